//! `stepccl completions`: what a shell needs to complete this command.

use std::error::Error;
use std::process::ExitCode;

use clap::{CommandFactory, ValueEnum};
use clap_complete::{Shell as Generator, generate};

use crate::status::print;

const NOTES: &str = "\
The text goes to standard output; put it where your shell looks:
  bash  stepccl completions bash > ~/.local/share/bash-completion/completions/stepccl
  zsh   stepccl completions zsh > \"${fpath[1]}/_stepccl\"
  fish  stepccl completions fish > ~/.config/fish/completions/stepccl.fish

For this shell alone:
  source <(stepccl completions bash)";

/// Write what a shell needs to complete this command.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// A shell that can complete.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Print it.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let generator = match args.shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut text = Vec::new();
    generate(generator, &mut crate::Cli::command(), "stepccl", &mut text);
    print(&String::from_utf8(text)?)?;
    Ok(ExitCode::SUCCESS)
}
