//! The report: a table as nccl-tests prints it, or JSON.

use std::io::{self, Write};

use serde_json::{Value, json};
use stepccl::{Collective, Stats};

use super::Args;
use super::operation::Operation;
use super::percentiles::Percentiles;
use super::timing::{Row, Timing};
use crate::format;

/// Bytes that cross the link for each byte of the size, as nccl-tests defines busbw.
fn bus_factor(operation: Operation, ranks: u32) -> f64 {
    let collective = match operation {
        Operation::Collective(collective) => collective,
        Operation::Group { .. } => Collective::AllReduce,
        Operation::SendRecv | Operation::PingPong => return 1.0,
    };
    let n = f64::from(ranks);
    match collective {
        Collective::AllReduce => 2.0 * (n - 1.0) / n,
        Collective::AllGather
        | Collective::ReduceScatter
        | Collective::AllToAll
        | Collective::Gather { .. }
        | Collective::Scatter { .. } => (n - 1.0) / n,
        _ => 1.0,
    }
}

/// Rates in GB/s.
#[derive(Clone, Copy, Debug)]
struct Rates {
    algorithm: f64,
    bus: f64,
}

impl Rates {
    fn of(row: &Row, timing: Timing) -> Self {
        let algorithm = row.size.bytes as f64 / timing.us.max(1e-3) / 1e3;
        Self { algorithm, bus: algorithm * bus_factor(row.case.operation, row.case.ranks) }
    }
}

/// Writes what was measured, each line as soon as it is known.
#[derive(Debug)]
pub(crate) struct Report<'a, W> {
    args: &'a Args,
    out: W,
    bus_sum: f64,
    timings: u32,
}

impl<'a, W: Write> Report<'a, W> {
    pub fn new(args: &'a Args, out: W) -> Self {
        Self { args, out, bus_sum: 0.0, timings: 0 }
    }

    /// What is measured, and the heads of the columns.
    ///
    /// # Errors
    ///
    /// Where the output cannot be written; so for every line.
    pub fn header(&mut self, stats: &Stats) -> io::Result<()> {
        if self.args.json {
            return Ok(());
        }
        let Args { operation, ranks, iterations, warmup, check, .. } = self.args;
        writeln!(
            self.out,
            "# stepccl {} {operation} ranks {ranks} engine {} staging {} a rank iters {iterations} warmup {warmup} check {check}",
            env!("CARGO_PKG_VERSION"),
            stats.engine,
            stepccl_plan::format_bytes(stats.staging_bytes as u64),
        )?;
        writeln!(
            self.out,
            "# start-up {:.1} ms; measured then: signal {:.0} ns, copy {:.1} GB/s, add {:.1} GB/s",
            stats.start_up.as_secs_f64() * 1e3,
            stats.figures.local.latency_ns,
            stats.figures.copy_bytes_per_second / 1e9,
            stats.figures.reduce_bytes_per_second / 1e9
        )?;
        if let Operation::Group { .. } = operation {
            let members = self.args.members;
            writeln!(self.out, "# {members} all_reduces in a group, and one of their total size")?;
        }
        let [(first, _), (second, _)] = operation.forms();
        writeln!(self.out, "#{first:>74}{second:>37}")?;
        let form = ["time", "algbw", "busbw", "#wrong"];
        self.heads(["size", "count", "type", "redop", "root"], form)?;
        self.heads(["(B)", "(elements)", "", "", ""], ["(us)", "(GB/s)", "(GB/s)", ""])
    }

    fn heads(
        &mut self,
        [size, count, dtype, op, root]: [&str; 5],
        form: [&str; 4],
    ) -> io::Result<()> {
        let [time, algorithm, bus, wrong] = form;
        let form = format!("{time:>10} {algorithm:>8} {bus:>8} {wrong:>7}");
        let line = format!("#{size:>12} {count:>13} {dtype:>9} {op:>6} {root:>5} {form} {form}");
        writeln!(self.out, "{}", line.trim_end())
    }

    /// A size.
    ///
    /// # Errors
    ///
    /// Where the output cannot be written.
    pub fn row(&mut self, row: &Row) -> io::Result<()> {
        for timing in std::iter::once(row.out_of_place).chain(row.in_place) {
            self.bus_sum += Rates::of(row, timing).bus;
            self.timings += 1;
        }
        if self.args.json {
            return writeln!(self.out, "{}", object(row));
        }
        writeln!(
            self.out,
            " {:>12} {:>13} {:>9} {:>6} {:>5} {} {}",
            row.size.bytes,
            row.size.count,
            row.case.dtype,
            row.case.op_name(),
            root(row),
            cells(row, Some(row.out_of_place)),
            cells(row, row.in_place),
        )?;
        if let Some(ratio) = row.group_ratio() {
            writeln!(
                self.out,
                "#  the group takes {} times as long as the one",
                format::short(ratio)
            )?;
        }
        let [(first, _), (second, _)] = row.case.operation.forms();
        for (form, timing) in [(first, Some(row.out_of_place)), (second, row.in_place)] {
            if let Some(Percentiles { p50, p90, p99, min, max }) =
                timing.and_then(|t| t.percentiles)
            {
                let [p50, p90, p99, min, max] = [p50, p90, p99, min, max].map(format::short);
                writeln!(
                    self.out,
                    "#  {form} calls in us: min {min} p50 {p50} p90 {p90} p99 {p99} max {max}"
                )?;
            }
        }
        Ok(())
    }

    /// What the rows have in common.
    ///
    /// # Errors
    ///
    /// Where the output cannot be written.
    pub fn footer(&mut self, stats: &Stats, wrong: u64) -> io::Result<()> {
        if self.args.json {
            return Ok(());
        }
        let algorithms: Vec<_> = stats.algorithms.iter().map(|(name, _)| *name).collect();
        let algorithms = algorithms.join(", ");
        writeln!(
            self.out,
            "# path: {} engine, {algorithms}; single copy {}",
            stats.engine, stats.single_copy
        )?;
        let wrong = if self.args.check == 1 { wrong.to_string() } else { "not checked".to_owned() };
        writeln!(self.out, "# wrong elements: {wrong}")?;
        let mean = self.bus_sum / f64::from(self.timings.max(1));
        writeln!(self.out, "# Avg bus bandwidth: {} GB/s", format::short(mean))
    }
}

/// The root as nccl-tests shows it: -1 where there is none.
fn root(row: &Row) -> i64 {
    row.case.operation.root().map_or(-1, i64::from)
}

fn cells(row: &Row, timing: Option<Timing>) -> String {
    let Some(timing) = timing else {
        return format!("{:>10} {:>8} {:>8} {:>7}", "N/A", "N/A", "N/A", "N/A");
    };
    let rates = Rates::of(row, timing);
    let wrong = timing.wrong.map_or_else(|| "N/A".to_owned(), |w| w.to_string());
    format!(
        "{:>10} {:>8} {:>8} {wrong:>7}",
        format::short(timing.us),
        format::short(rates.algorithm),
        format::short(rates.bus)
    )
}

fn object(row: &Row) -> Value {
    let timing = |timing: Timing| {
        let rates = Rates::of(row, timing);
        let mut object = json!({
            "time_us": timing.us,
            "algbw_gb_per_s": rates.algorithm,
            "busbw_gb_per_s": rates.bus,
            "wrong": timing.wrong,
        });
        if let Some(Percentiles { p50, p90, p99, min, max }) = timing.percentiles {
            object["percentiles_us"] =
                json!({ "p50": p50, "p90": p90, "p99": p99, "min": min, "max": max });
        }
        object
    };
    let [(_, first), (_, second)] = row.case.operation.forms();
    let mut object = json!({
        "collective": row.case.operation.name(),
        "bytes": row.size.bytes,
        "count": row.size.count,
        "dtype": row.case.dtype.name(),
        "op": row.case.op_name(),
        "root": root(row),
        "ranks": row.case.ranks,
        "time_us": row.out_of_place.us,
        first: timing(row.out_of_place),
        second: row.in_place.map(timing),
    });
    if let (Some(ratio), Operation::Group { members }) = (row.group_ratio(), row.case.operation) {
        object["members"] = json!(members);
        object["ratio"] = json!(ratio);
    }
    object
}
