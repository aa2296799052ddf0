//! `oxkeeper generate`: completions for shells and man pages, made from the command line's own description.

use clap::Command;
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::PathBuf;

/// What is made.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Generate {
    /// Print completions for a shell.
    Completions {
        /// bash, zsh or fish.
        shell: Shell,
    },
    /// Write a man page for the program and one for each command.
    Man {
        /// The folder, which is made if need be.
        folder: PathBuf,
    },
}

/// * `command`: the whole command line.
///
/// # Errors
/// Those of the output or of the folder.
pub fn run(what: &Generate, mut command: Command, out: &mut dyn Write) -> io::Result<()> {
    match what {
        Generate::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut command, "oxkeeper", &mut text);
            out.write_all(&text)
        }
        Generate::Man { folder } => {
            std::fs::create_dir_all(folder)?;
            clap_mangen::generate_to(command, folder)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        Command::new("oxkeeper").about("A server.").subcommand(Command::new("status").about("Ask."))
    }

    #[test]
    fn completions_and_pages_have_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut out = Vec::new();
            run(&Generate::Completions { shell }, command(), &mut out).unwrap();
            assert!(String::from_utf8(out).unwrap().contains("status"), "{shell}");
        }
        let folder = tempfile::tempdir().unwrap();
        let pages = folder.path().join("man1");
        run(&Generate::Man { folder: pages.clone() }, command(), &mut io::sink()).unwrap();
        for page in ["oxkeeper.1", "oxkeeper-status.1"] {
            assert!(pages.join(page).exists(), "{page}");
        }
    }
}
