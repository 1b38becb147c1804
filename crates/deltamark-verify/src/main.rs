//! `deltamark-verify`: checks a certificate, and links nothing else of Deltamark.
//!
//! In: `deltamark-verify CERTIFICATE MODEL [MIB]`; the last is the most memory that the claims and the states may take, 4096 unless
//! it is given. Out: what was checked; exit code 0 if the certificate is accepted, 1 if it is rejected, 2 if the input is
//! wrong, 3 if a limit was reached.

use deltamark_verify::{Failure, Limits, verify};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (certificate, model, memory) = match arguments.as_slice() {
        [certificate, model] => (certificate, model, Ok(4096)),
        [certificate, model, memory] => (certificate, model, memory.parse::<u64>()),
        _ => return wrong("usage: deltamark-verify CERTIFICATE MODEL [MIB]"),
    };
    let Ok(memory) = memory else { return wrong("the most memory is a number of MiB") };
    let read = |path: &String| std::fs::read(path).map_err(|error| format!("cannot read `{path}`: {error}"));
    let (file, text) = match (read(certificate), read(model)) {
        (Ok(file), Ok(text)) => (file, text),
        (Err(why), _) | (_, Err(why)) => return wrong(&why),
    };
    let memory = memory.saturating_mul(1 << 20);
    let limits = Limits { memory, whole: memory, stop: &|| None };
    match verify(&file, &text, &limits) {
        Ok(accepted) => {
            print!("{accepted}");
            ExitCode::SUCCESS
        }
        Err(Failure::Rejected(why)) => {
            println!("rejected: {why}");
            ExitCode::from(1)
        }
        Err(Failure::Input(why)) => wrong(&why),
        Err(Failure::Limit(why)) => {
            eprintln!("no answer: {why}");
            ExitCode::from(3)
        }
    }
}

fn wrong(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::from(2)
}
