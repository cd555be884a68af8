//! `stepccl bench`: the time of a collective by size, as nccl-tests shows it.

mod args;
mod buffer;
mod case;
mod float8;
mod needs;
mod place;
mod report;
mod sizes;
mod timing;
mod values;

use std::error::Error;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use stepccl::{Communicator, Config, FileStore, Secret};

pub(crate) use args::Args;
use case::Case;
use report::Report;

use crate::launch::{self, Role};
use crate::outcome::{self, OutputError, say};

/// Time an operation may take, unless an argument or the environment says otherwise.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Check everything, start the ranks; or be one of them.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    match Role::take()? {
        Some(role) => Ok(rank(args, &role)),
        None => {
            args.check()?;
            let config = config(args)?;
            if let Some(secret) = &config.secret {
                // Once here, and not by every rank.
                Secret::from_text(secret).map_err(|error| format!("STEPCCL_SECRET: {error}"))?;
            }
            needs::check(args, &config)?;
            Ok(launch::ranks(args.ranks)?)
        }
    }
}

fn config(args: &Args) -> Result<Config, stepccl::Error> {
    let mut config = Config::from_env()?;
    if let Some(timeout) = args.timeout {
        config.timeout = timeout;
    } else if std::env::var_os("STEPCCL_TIMEOUT").is_none() {
        config.timeout = TIMEOUT;
    }
    Ok(config)
}

/// Be a rank. It tells its own errors: the process that started it knows only exit codes.
fn rank(args: &Args, role: &Role) -> ExitCode {
    match measure(args, role.rank, &role.store) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(wrong) => {
            if role.rank == 0 {
                say(format_args!(
                    "stepccl: {wrong} elements are wrong; the rows above say of which sizes"
                ));
            }
            ExitCode::FAILURE
        }
        Err(error) => outcome::failure_of_rank(role.rank, error.as_ref()),
    }
}

/// Run every case and size; the number of wrong elements.
fn measure(args: &Args, rank: u32, store: &Path) -> Result<u64, Box<dyn Error>> {
    if !args.no_bind {
        bind(rank, args.ranks);
    }
    let store = FileStore::open(store)?;
    let communicator = Communicator::new(&store, "bench.0", rank, args.ranks, &config(args)?)?;
    let mut report = (rank == 0).then(|| Report::new(args, io::stdout()));
    let header = report.as_mut().map(|report| report.header(&communicator.stats()));
    let mut go_on = written(&communicator, header)?;
    let mut wrong = 0;
    for case in Case::all(args) {
        for size in sizes::sizes(args, case) {
            if !go_on {
                return Ok(wrong);
            }
            let row = timing::row(args, &communicator, case, size)?;
            wrong += row.wrong();
            go_on = written(&communicator, report.as_mut().map(|report| report.row(&row)))?;
        }
    }
    if let Some(report) = &mut report {
        report.footer(&communicator.stats(), wrong).map_err(OutputError)?;
    }
    Ok(wrong)
}

/// Whether the rank that reports could write: if not, the others end without a word, and it
/// returns the reason.
fn written(
    communicator: &Communicator,
    result: Option<io::Result<()>>,
) -> Result<bool, Box<dyn Error>> {
    let mut go_on = [i32::from(!matches!(result, Some(Err(_))))];
    communicator.broadcast(&mut go_on, 0)?;
    result.transpose().map_err(OutputError)?;
    Ok(go_on[0] != 0)
}

/// Keep a rank on a core of its own, where there are enough.
fn bind(rank: u32, ranks: u32) {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;
    let me = Pid::from_raw(0);
    let Ok(allowed) = sched_getaffinity(me) else { return };
    let cores: Vec<usize> =
        (0..CpuSet::count()).filter(|c| allowed.is_set(*c).unwrap_or(false)).collect();
    let Some(core) = cores.get(rank as usize).filter(|_| cores.len() >= ranks as usize) else {
        return;
    };
    let mut set = CpuSet::new();
    if set.set(*core).is_ok() {
        // Where it is refused, the figures are those of the system's placement.
        let _ = sched_setaffinity(me, &set);
    }
}
