//! Ranks that another launcher started: torchrun, mpirun, srun. Reads what their variables say.

use std::fmt;

use super::LaunchError;

/// Ports for jobs whose launcher names none: below those that systems hand out themselves.
const FIRST_PORT: u16 = 20_000;
const PORTS: u64 = 10_000;

/// A kind of launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Launcher {
    /// `torchrun`, and whoever sets `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`.
    Torch,
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// `mpirun` of MPICH and its relatives (hydra).
    Pmi,
    /// `srun` of Slurm.
    Slurm,
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Torch => "torchrun",
            Self::OpenMpi => "mpirun (Open MPI)",
            Self::Pmi => "mpirun (PMI)",
            Self::Slurm => "srun",
        })
    }
}

/// Where the ranks of a job find one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// All ranks are on this machine: a folder whose name follows from the job, in these words, or
    /// from the process that started the ranks.
    Here(Option<String>),
    /// Rank 0 serves at this host and port.
    Address(String, u16),
}

/// The place of this process in a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct External {
    pub launcher: Launcher,
    pub rank: u32,
    pub ranks: u32,
    /// Rank among those of this machine, and how many they are; where the launcher says so.
    pub local: Option<(u32, u32)>,
    pub meeting: Meeting,
}

impl External {
    /// The place that the variables tell; `None` where no launcher started this process.
    ///
    /// # Errors
    ///
    /// [`LaunchError::Variable`] where a variable cannot be read, [`LaunchError::Address`] where
    /// ranks are on several machines and none says where rank 0 is.
    pub fn from(variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, LaunchError> {
        let variables = Variables(variable);
        let has = |name: &str| variable(name).is_some();
        // An inner launcher comes first: torchrun and mpirun run inside of jobs of Slurm.
        if has("RANK") && has("WORLD_SIZE") {
            return variables.torch().map(Some);
        }
        if has("OMPI_COMM_WORLD_RANK") {
            return variables.open_mpi().map(Some);
        }
        if has("PMI_RANK") && has("PMI_SIZE") {
            return variables.pmi().map(Some);
        }
        // A batch script has a SLURM_PROCID too; only srun sets these.
        let step = has("SLURM_STEP_ID") || has("SLURM_LAUNCH_NODE_IPADDR");
        if has("SLURM_PROCID") && step {
            return variables.slurm().map(Some);
        }
        Ok(None)
    }
}

struct Variables<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|text| !text.is_empty())
    }

    fn number<T: std::str::FromStr>(&self, name: &'static str) -> Result<Option<T>, LaunchError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(LaunchError::Variable { name, value: text }),
        }
    }

    fn needed<T: std::str::FromStr>(&self, name: &'static str) -> Result<T, LaunchError> {
        self.number(name)?.ok_or(LaunchError::Variable { name, value: "not set".to_owned() })
    }

    fn local(
        &self,
        rank: &'static str,
        size: &'static str,
    ) -> Result<Option<(u32, u32)>, LaunchError> {
        Ok(self.number(rank)?.zip(self.number(size)?))
    }

    /// The address that the user or the launcher gives.
    fn master(&self) -> Result<Option<(String, u16)>, LaunchError> {
        Ok(self.text("MASTER_ADDR").zip(self.number("MASTER_PORT")?))
    }

    fn torch(&self) -> Result<External, LaunchError> {
        let (rank, ranks) = (self.needed("RANK")?, self.needed("WORLD_SIZE")?);
        let local = self.local("LOCAL_RANK", "LOCAL_WORLD_SIZE")?;
        let (host, port) = self.master()?.ok_or(LaunchError::Address(Launcher::Torch))?;
        // The agent of torchrun serves its own store at MASTER_PORT.
        let taken = self.text("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|text| text == "True");
        let meeting = match local {
            Some((_, size)) if taken && size == ranks => Meeting::Here(None),
            _ if taken => Meeting::Address(host, port.checked_add(1).unwrap_or(FIRST_PORT)),
            _ => Meeting::Address(host, port),
        };
        External { launcher: Launcher::Torch, rank, ranks, local, meeting }.checked()
    }

    fn open_mpi(&self) -> Result<External, LaunchError> {
        let rank = self.needed("OMPI_COMM_WORLD_RANK")?;
        let ranks = self.needed("OMPI_COMM_WORLD_SIZE")?;
        let local = self.local("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE")?;
        let job = self.text("PMIX_NAMESPACE");
        let meeting = self.meeting(Launcher::OpenMpi, ranks, local, job, None)?;
        External { launcher: Launcher::OpenMpi, rank, ranks, local, meeting }.checked()
    }

    fn pmi(&self) -> Result<External, LaunchError> {
        let (rank, ranks) = (self.needed("PMI_RANK")?, self.needed("PMI_SIZE")?);
        let local = self.local("MPI_LOCALRANKID", "MPI_LOCALNRANKS")?;
        let meeting = self.meeting(Launcher::Pmi, ranks, local, None, None)?;
        External { launcher: Launcher::Pmi, rank, ranks, local, meeting }.checked()
    }

    fn slurm(&self) -> Result<External, LaunchError> {
        let rank = self.needed("SLURM_PROCID")?;
        let ranks = match self.number("SLURM_STEP_NUM_TASKS")? {
            Some(ranks) => ranks,
            None => self.needed("SLURM_NTASKS")?,
        };
        let nodes: Option<u32> = match self.number("SLURM_STEP_NUM_NODES")? {
            Some(nodes) => Some(nodes),
            None => self.number("SLURM_NNODES")?,
        };
        // Tasks a node are told as a list; on one node they are all of them.
        let own: Option<u32> = self.number("SLURM_LOCALID")?;
        let local = own.filter(|_| nodes == Some(1)).map(|own| (own, ranks));
        let id = |name| self.text(name).unwrap_or_default();
        let job = format!("slurm-{}.{}", id("SLURM_JOB_ID"), id("SLURM_STEP_ID"));
        // Where srun was called: in a batch script that is the first node, which has rank 0.
        let host = self.text("SLURM_LAUNCH_NODE_IPADDR");
        let meeting = self.meeting(Launcher::Slurm, ranks, local, Some(job), host)?;
        External { launcher: Launcher::Slurm, rank, ranks, local, meeting }.checked()
    }

    /// On one machine a folder; else the address that is given, else `host` with a port from `job`.
    fn meeting(
        &self,
        launcher: Launcher,
        ranks: u32,
        local: Option<(u32, u32)>,
        job: Option<String>,
        host: Option<String>,
    ) -> Result<Meeting, LaunchError> {
        if local.is_some_and(|(_, size)| size == ranks) {
            return Ok(Meeting::Here(job));
        }
        if let Some((host, port)) = self.master()? {
            return Ok(Meeting::Address(host, port));
        }
        let host = host.ok_or(LaunchError::Address(launcher))?;
        let number = hash(job.unwrap_or_default().as_bytes()) % PORTS;
        Ok(Meeting::Address(host, FIRST_PORT + number as u16))
    }
}

impl External {
    fn checked(self) -> Result<Self, LaunchError> {
        if self.rank < self.ranks {
            return Ok(self);
        }
        let (launcher, rank, ranks) = (self.launcher, self.rank, self.ranks);
        Err(LaunchError::Place { launcher, rank, ranks })
    }
}

/// The same number on every machine (FNV-1a).
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Option<External>, LaunchError> {
        External::from(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn place(variables: &[(&str, &str)]) -> External {
        of(variables).unwrap().unwrap()
    }

    const TORCH: [(&str, &str); 4] =
        [("RANK", "3"), ("WORLD_SIZE", "4"), ("MASTER_ADDR", "head"), ("MASTER_PORT", "29500")];

    #[test]
    fn nobody_is_no_launcher_and_a_batch_script_is_none() {
        assert_eq!(of(&[]).unwrap(), None);
        assert_eq!(of(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]).unwrap(), None);
        assert_eq!(of(&[("RANK", "0")]).unwrap(), None);
    }

    #[test]
    fn torch_variables_name_the_address_unless_the_agent_has_it() {
        let found = place(&TORCH);
        assert_eq!((found.launcher, found.rank, found.ranks), (Launcher::Torch, 3, 4));
        assert_eq!(found.meeting, Meeting::Address("head".to_owned(), 29500));
        let agent = ("TORCHELASTIC_USE_AGENT_STORE", "True");
        let found = place(&[&TORCH[..], &[agent]].concat());
        assert_eq!(found.meeting, Meeting::Address("head".to_owned(), 29501));
        let here = [("LOCAL_RANK", "3"), ("LOCAL_WORLD_SIZE", "4"), agent];
        let found = place(&[&TORCH[..], &here].concat());
        assert_eq!((found.local, found.meeting), (Some((3, 4)), Meeting::Here(None)));
    }

    #[test]
    fn mpirun_on_one_machine_needs_no_address() {
        let variables = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
            ("PMIX_NAMESPACE", "job@1"),
        ];
        let found = place(&variables);
        assert_eq!((found.launcher, found.rank, found.ranks), (Launcher::OpenMpi, 1, 2));
        assert_eq!(found.meeting, Meeting::Here(Some("job@1".to_owned())));
        let hydra = [
            ("PMI_RANK", "0"),
            ("PMI_SIZE", "2"),
            ("MPI_LOCALRANKID", "0"),
            ("MPI_LOCALNRANKS", "2"),
        ];
        let found = place(&hydra);
        assert_eq!((found.launcher, found.meeting), (Launcher::Pmi, Meeting::Here(None)));
    }

    #[test]
    fn mpirun_on_several_machines_asks_for_the_address() {
        let spread = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        let words = of(&spread).unwrap_err().to_string();
        assert!(words.contains("MASTER_ADDR") && words.contains("Open MPI"), "{words}");
        let given = [("MASTER_ADDR", "head"), ("MASTER_PORT", "5000")];
        let found = place(&[&spread[..], &given].concat());
        assert_eq!(found.meeting, Meeting::Address("head".to_owned(), 5000));
    }

    #[test]
    fn srun_takes_the_node_it_was_called_on_and_a_port_of_the_job() {
        let step = |rank| {
            place(&[
                ("SLURM_PROCID", rank),
                ("SLURM_NTASKS", "4"),
                ("SLURM_NNODES", "2"),
                ("SLURM_LOCALID", "0"),
                ("SLURM_JOB_ID", "77"),
                ("SLURM_STEP_ID", "0"),
                ("SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"),
            ])
        };
        let (first, last) = (step("0"), step("3"));
        assert_eq!((first.launcher, last.rank, last.local), (Launcher::Slurm, 3, None));
        assert_eq!(first.meeting, last.meeting);
        let Meeting::Address(host, port) = first.meeting else { panic!("{first:?}") };
        assert_eq!(host, "10.0.0.1");
        assert!((20_000..30_000).contains(&port), "{port}");
        let here = place(&[
            ("SLURM_PROCID", "1"),
            ("SLURM_STEP_NUM_TASKS", "2"),
            ("SLURM_STEP_NUM_NODES", "1"),
            ("SLURM_LOCALID", "1"),
            ("SLURM_JOB_ID", "77"),
            ("SLURM_STEP_ID", "3"),
        ]);
        let meeting = Meeting::Here(Some("slurm-77.3".to_owned()));
        assert_eq!((here.local, here.meeting), (Some((1, 2)), meeting));
    }

    #[test]
    fn variables_that_cannot_be_read_are_named() {
        for (name, value) in
            [("RANK", "x"), ("WORLD_SIZE", "-1"), ("MASTER_PORT", "70000"), ("RANK", "4")]
        {
            let mut variables = TORCH;
            variables.iter_mut().find(|(known, _)| *known == name).unwrap().1 = value;
            let words = of(&variables).unwrap_err().to_string();
            assert!(
                words.contains(value) && words.contains("torchrun") || words.contains(name),
                "{words}"
            );
        }
        assert!(of(&TORCH[..3]).unwrap_err().to_string().contains("MASTER_PORT"));
    }
}
