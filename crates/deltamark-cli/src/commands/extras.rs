//! `deltamark completions` and `deltamark man`.
//!
//! In: the definition of the command line. Out: completions for a shell, and manual pages, both generated
//! from that definition and so always consistent with it.

use crate::args::{Arguments, Completions, Man};
use crate::exit::{Exit, Failure};
use crate::output::{print, write_file};
use clap::{Command, CommandFactory};
use std::fs;
use std::path::Path;

/// Prints completions.
pub fn completions(arguments: &Completions) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "deltamark", &mut script);
    print(&crate::signals::control(), |out| out.write_all(&script))?;
    Ok(Exit::Good)
}

/// Prints the manual page, or writes one for each command.
pub fn man(arguments: &Man) -> Result<Exit, Failure> {
    match &arguments.dir {
        None => {
            let page = clap_mangen::Man::new(Arguments::command());
            print(&crate::signals::control(), |out| page.render(&mut Through(out)))?;
        }
        Some(dir) => {
            fs::create_dir_all(dir)
                .map_err(|error| Failure::new(format!("cannot make the folder `{}`: {error}", dir.display())))?;
            let mut command = Arguments::command().disable_help_subcommand(true);
            command.build();
            write_page(dir, &command)?;
            for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
                write_page(dir, sub)?;
            }
        }
    }
    Ok(Exit::Good)
}

fn write_page(dir: &Path, command: &Command) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let page = clap_mangen::Man::new(command.clone());
    let path = dir.join(format!("{name}.1"));
    write_file(&path.to_string_lossy(), &crate::signals::control(), |out| page.render(&mut Through(out)))
}

/// A sized writer in front of an unsized one, as the renderer of the page requires.
struct Through<'a>(&'a mut dyn std::io::Write);

impl std::io::Write for Through<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
