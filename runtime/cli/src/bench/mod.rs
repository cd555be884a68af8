//! `stepccl bench`: the time of a collective by size, as nccl-tests shows it.

mod args;
mod buffer;
mod case;
mod float8;
mod needs;
mod operation;
mod percentiles;
mod place;
mod progress;
mod report;
mod sizes;
mod timing;
mod values;

use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use stepccl::{Communicator, Config, Secret};

pub(crate) use args::Args;
use case::Case;
pub(crate) use needs::files_needed;
use progress::Progress;
use report::Report;

use crate::launch::{self, External, Role, Seat};
use crate::outcome::{self, OutputError, say};

/// Time an operation may take, unless an argument or the environment says otherwise.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Check everything, start the ranks; or be one of them, or one that another launcher started.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(role) = Role::take()? {
        return Ok(rank(args, &Seat::of_role(role, args.ranks)));
    }
    let variable = |name: &str| std::env::var(name).ok();
    let external = if args.here { None } else { External::from(&variable)? };
    match external {
        Some(external) => {
            let args = &Args { ranks: external.ranks, ..args.clone() };
            args.check()?;
            Ok(rank(args, &Seat::of_external(external)))
        }
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
fn rank(args: &Args, seat: &Seat) -> ExitCode {
    match measure(args, seat) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(wrong) => {
            if seat.rank == 0 {
                say(format_args!(
                    "stepccl: {wrong} elements are wrong; the rows above say of which sizes"
                ));
            }
            ExitCode::FAILURE
        }
        Err(error) => outcome::failure_of_rank(seat.rank, error.as_ref()),
    }
}

/// Run every case and size; the number of wrong elements.
fn measure(args: &Args, seat: &Seat) -> Result<u64, Box<dyn Error>> {
    if !args.no_bind {
        bind(seat.local);
    }
    let communicator = communicator(args, seat)?;
    let sizes = || Case::all(args).into_iter().flat_map(|case| sizes::sizes(args, case));
    let mut progress = Progress::new(sizes(), seat.rank);
    let mut report = (seat.rank == 0).then(|| Report::new(args, io::stdout()));
    let header = report.as_mut().map(|report| report.header(&communicator.stats()));
    let mut go_on = written(&communicator, header)?;
    let mut wrong = 0;
    for case in Case::all(args) {
        for size in sizes::sizes(args, case) {
            if !go_on {
                return Ok(wrong);
            }
            progress.begin(|| {
                let bytes = stepccl_plan::format_bytes(size.bytes as u64);
                format!("{} {} {} {bytes}", case.operation, case.dtype, case.op_name())
            });
            let row = timing::row(args, &communicator, case, size);
            progress.clear();
            let row = row?;
            wrong += row.wrong();
            go_on = written(&communicator, report.as_mut().map(|report| report.row(&row)))?;
        }
    }
    if let Some(report) = &mut report {
        report.footer(&communicator.stats(), wrong).map_err(OutputError)?;
    }
    Ok(wrong)
}

/// Meet the other ranks. What they met at is gone when this returns.
fn communicator(args: &Args, seat: &Seat) -> Result<Communicator, Box<dyn Error>> {
    let config = config(args)?;
    let secret = config.secret.as_deref().map(Secret::from_text).transpose();
    let secret = secret.map_err(|error| format!("STEPCCL_SECRET: {error}"))?;
    let met = seat.meet(secret, config.start_timeout)?;
    let communicator = Communicator::new(met.store(), "bench.0", seat.rank, seat.ranks, &config)?;
    // Nobody reads there any more.
    communicator.barrier()?;
    Ok(communicator)
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

/// Keep a rank on a core of its own among those of this machine, where there are enough: a launcher
/// may have given it one already.
fn bind((rank, ranks): (u32, u32)) {
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
