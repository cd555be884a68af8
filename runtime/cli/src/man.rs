//! `stepccl man`: the manual pages, one for each command.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, ValueHint};

use crate::status::print;

const NOTES: &str = "\
The pages are those of --help. They are written to files of this folder, which is made where it is
not there; files of the same names are replaced.

Examples:
  stepccl man --out ~/.local/share/man/man1 && man stepccl-bench
  stepccl man --out /tmp/man && man -l /tmp/man/stepccl.1";

/// Write the manual pages.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct Args {
    /// Folder for stepccl.1, stepccl-bench.1 and so on
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    out: PathBuf,
}

/// A page could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}; give a folder that can be written as --out", path.display())]
pub(crate) struct PageError {
    path: PathBuf,
    source: std::io::Error,
}

/// Write them, and print their names.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let failed = |path: &PathBuf| {
        let path = path.clone();
        move |source| PageError { path, source }
    };
    std::fs::create_dir_all(&args.out).map_err(failed(&args.out))?;
    for (name, page) in pages()? {
        let path = args.out.join(name);
        std::fs::write(&path, page).map_err(failed(&path))?;
        print(&format!("{}\n", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Name and text of each page.
fn pages() -> std::io::Result<Vec<(String, String)>> {
    let mut whole = crate::Cli::command().disable_help_subcommand(true);
    whole.build();
    let mut pages = Vec::new();
    for command in std::iter::once(&whole).chain(whole.get_subcommands()) {
        let name = match command.get_name() {
            "stepccl" => "stepccl".to_owned(),
            other => format!("stepccl-{other}"),
        };
        let page = clap_mangen::Man::new(command.clone())
            .title(&name)
            .source(concat!("StepCCL ", env!("CARGO_PKG_VERSION")))
            .manual("StepCCL");
        let mut text = Vec::new();
        page.render(&mut text)?;
        // What stands below the options in --help; readers of a page know it as notes.
        let text = String::from_utf8_lossy(&text).replace(".SH EXTRA\n", ".SH NOTES\n");
        // A page without a date has an empty one, or the version would be taken for it.
        let text = text.replacen(" 1  \"", " 1 \"\" \"", 1);
        pages.push((format!("{name}.1"), text));
    }
    Ok(pages)
}
