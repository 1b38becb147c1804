//! `deltamark reproduce`.
//!
//! In: a paper. Out: its tables, published and measured, on standard output and as files. What stays true:
//! what was measured before Ctrl-C is written.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::{print, tell, write_file};
use deltamark_reproduce::{Extent, Missing, StudyOptions};
use std::path::Path;

/// Measures, prints and writes.
pub fn run(arguments: &args::Reproduce) -> Result<Exit, Failure> {
    let paper = arguments.paper;
    if let Some(folder) = arguments.models.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(Failure::new(format!("there is no folder `{}`", folder.display())));
    }
    match paper.missing(arguments.models.as_deref()) {
        Some(Missing::Folder(what)) => {
            let message = format!("`{}` is measured with {what}, which do not come with Deltamark", paper.name);
            return Err(Failure::new(message).help("name the folder that holds them by `--models DIR`").no_answer());
        }
        Some(Missing::Files(what, file)) => {
            let folder = arguments.models.as_deref().unwrap_or(Path::new("")).display();
            let message =
                format!("the folder `{folder}` holds none of {what}, with which `{}` is measured", paper.name);
            return Err(Failure::new(message).help(format!("it should hold files such as {file}")));
        }
        None => {}
    }
    let folder = arguments.output.clone().unwrap_or_else(|| format!("reproduce-{}", paper.name).into());
    // Before the runs: if the result cannot be written, fail now.
    std::fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(format!("cannot make the folder `{}`: {error}", folder.display())))?;
    let tell = |run: &str| {
        if !arguments.quiet {
            tell(run);
        }
    };
    let options = StudyOptions {
        extent: if arguments.full { Extent::Full } else { Extent::Quick },
        models: arguments.models.clone(),
        cancel: crate::signals::cancel(),
        tell: &tell,
    };
    let study = paper.reproduce(&options);
    let json = serde_json::to_string_pretty(&study).map_err(|error| Failure::new(error.to_string()))?;
    write(&folder, "report.json", &json)?;
    write(&folder, "report.html", &study.to_html())?;
    for figure in &study.figures {
        write(&folder, &format!("{}.svg", figure.name), &figure.svg)?;
    }
    let page = folder.join("report.html");
    print(&crate::signals::control(), |out| {
        out.write_all(study.to_text().as_bytes())?;
        writeln!(out, "\nwritten to {}", page.display())
    })?;
    Ok(if study.complete { Exit::Good } else { Exit::NoAnswer })
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    write_file(&folder.join(name).display().to_string(), &crate::signals::control(), |out| {
        out.write_all(text.as_bytes())
    })
}
