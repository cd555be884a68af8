//! The report: a table as nccl-tests prints it, or JSON.

use serde_json::json;
use stepccl::{Collective, Communicator};

use super::Args;
use super::timing::{Row, Timing};

/// Bytes that cross the link for each byte of the size, as nccl-tests defines busbw.
pub(crate) fn bus_factor(collective: Collective, ranks: u32) -> f64 {
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

pub(crate) fn header(args: &Args, communicator: &Communicator) {
    if args.json {
        return;
    }
    let stats = communicator.stats();
    println!(
        "# stepccl {} {} ranks {} engine {} staging {} bytes a rank iters {} warmup {} check {}",
        env!("CARGO_PKG_VERSION"),
        args.collective,
        args.ranks,
        stats.engine,
        stats.staging_bytes,
        args.iterations,
        args.warmup,
        args.check
    );
    println!(
        "# measured at start: signal {:.0} ns, copy {:.1} GB/s, add {:.1} GB/s",
        stats.figures.local.latency_ns,
        stats.figures.copy_bytes_per_second / 1e9,
        stats.figures.reduce_bytes_per_second / 1e9
    );
    println!("#{:>62}{:>38}", "out-of-place", "in-place");
    println!(
        "#{:>12}{:>14}{:>10}{:>8}{:>8}{:>10}{:>9}{:>9}{:>8}{:>11}{:>9}{:>9}{:>8}",
        "size",
        "count",
        "type",
        "redop",
        "root",
        "time",
        "algbw",
        "busbw",
        "#wrong",
        "time",
        "algbw",
        "busbw",
        "#wrong"
    );
    println!(
        "#{:>12}{:>14}{:>10}{:>8}{:>8}{:>10}{:>9}{:>9}{:>8}{:>11}{:>9}{:>9}{:>8}",
        "(B)",
        "(elements)",
        "",
        "",
        "",
        "(us)",
        "(GB/s)",
        "(GB/s)",
        "",
        "(us)",
        "(GB/s)",
        "(GB/s)",
        ""
    );
}

fn bandwidth(bytes: usize, us: f64) -> f64 {
    bytes as f64 / us.max(1e-9) / 1e3
}

fn cells(args: &Args, bytes: usize, timing: Option<Timing>, width: usize) -> String {
    let Some(timing) = timing else {
        return format!("{:>width$}{:>9}{:>9}{:>8}", "N/A", "N/A", "N/A", "N/A");
    };
    let algbw = bandwidth(bytes, timing.us);
    let busbw = algbw * bus_factor(args.collective, args.ranks);
    let wrong = timing.wrong.map_or_else(|| "N/A".to_owned(), |w| w.to_string());
    format!("{:>width$.2}{algbw:>9.2}{busbw:>9.2}{wrong:>8}", timing.us)
}

pub(crate) fn row(args: &Args, row: &Row) {
    let bytes = row.size.bytes;
    let op = if args.collective.reduces() { args.op.name() } else { "none" };
    let root = args.collective.root().map_or(-1, |_| i64::from(args.root));
    if args.json {
        let timing = |t: Timing| {
            let algbw = bandwidth(bytes, t.us);
            json!({
                "time_us": t.us,
                "algbw_gbps": algbw,
                "busbw_gbps": algbw * bus_factor(args.collective, args.ranks),
                "wrong": t.wrong,
            })
        };
        let mut object = json!({
            "collective": args.collective.name(),
            "bytes": bytes,
            "count": row.size.count,
            "dtype": args.dtype.name(),
            "op": op,
            "root": root,
            "ranks": args.ranks,
            "time_us": row.out_of_place.us,
            "out_of_place": timing(row.out_of_place),
        });
        if let Some(in_place) = row.in_place {
            object["in_place"] = timing(in_place);
        }
        println!("{object}");
        return;
    }
    println!(
        " {:>12}{:>14}{:>10}{op:>8}{root:>8}{}{}",
        bytes,
        row.size.count,
        args.dtype,
        cells(args, bytes, Some(row.out_of_place), 10),
        cells(args, bytes, row.in_place, 11),
    );
}

pub(crate) fn footer(args: &Args, communicator: &Communicator, wrong: u64) {
    if args.json {
        return;
    }
    let stats = communicator.stats();
    let algorithms: Vec<String> =
        stats.algorithms.iter().map(|(name, sizes)| format!("{name} for {sizes} sizes")).collect();
    println!("# path: {} engine, {}", stats.engine, algorithms.join(", "));
    println!("# wrong elements: {wrong}");
}
