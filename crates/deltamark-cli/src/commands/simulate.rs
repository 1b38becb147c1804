//! `deltamark simulate`.
//!
//! In: a model, and steps chosen by hand or at random. Out: the enabled steps, and the changes of each step.
//! What stays true: it works the same when standard input is a file; the end of the input ends it.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output::{Look, print};
use crate::text::{changed, row};
use crate::units::show_counted;
use deltamark::simulate::{Chance, Simulator};
use deltamark::{Limits, Value};
use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal};
use std::time::Instant;
use std::time::{SystemTime, UNIX_EPOCH};

/// The maximum number of choices listed at once.
const CHOICES: usize = 40;

const HELP: &str = "  NUMBER, NAME   take that step
  list           show what can happen (all of it)
  state          show the present state
  path           show the steps taken so far
  back [N]       take back the last step, or the last N
  reset [N]      go back to the initial state (number N, where there are several)
  random [N]     take one step by chance, or N
  help           show this
  quit           end
";

/// Steps through a model.
pub fn run(arguments: &args::Simulate) -> Result<Exit, Failure> {
    let model = arguments.model.load(&Limits::default(), None, Instant::now())?;
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.subsec_nanos().into());
    let seed = arguments.seed.unwrap_or_else(clock);
    let mut session =
        Session { simulator: Simulator::new(model.system.as_ref()), chance: Chance::new(seed), look: Look::stdout() };
    match arguments.random {
        Some(count) => print(&crate::signals::control(), |out| {
            writeln!(out, "seed {seed}")?;
            out.write_all(session.shown_state().as_bytes())?;
            session.random(count, &mut |line| out.write_all(line.as_bytes()))
        })?,
        None => session.interact()?,
    }
    Ok(Exit::Good)
}

struct Session<'a> {
    simulator: Simulator<'a>,
    chance: Chance,
    look: Look,
}

impl Session<'_> {
    fn interact(&mut self) -> Result<(), Failure> {
        let prompt = io::stdin().is_terminal() && io::stdout().is_terminal();
        let mut answer = format!("{}{}", self.shown_state(), self.shown_choices(CHOICES));
        let mut lines = io::stdin().lock().lines();
        loop {
            print(&crate::signals::control(), |out| {
                out.write_all(answer.as_bytes())?;
                if prompt { out.write_all(b"> ") } else { Ok(()) }
            })?;
            let line = match lines.next() {
                Some(Ok(line)) => line,
                Some(Err(error)) => return Err(Failure::new(format!("cannot read standard input: {error}"))),
                None => return Ok(()),
            };
            match self.obey(line.trim()) {
                Some(text) => answer = text,
                None => return Ok(()),
            }
        }
    }

    /// Executes a line and returns its output; `None` ends the simulation.
    fn obey(&mut self, line: &str) -> Option<String> {
        // A name of the model takes precedence: it may be the name of a command.
        if let Some(number) = self.named(line) {
            return Some(self.take(number));
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let number: Option<u64> = rest.trim().parse().ok();
        let bad_number = !rest.trim().is_empty() && number.is_none();
        Some(match word {
            "quit" | "q" | "exit" => return None,
            "" => self.shown_choices(CHOICES),
            "help" | "h" | "?" => HELP.into(),
            "list" | "l" => self.shown_choices(usize::MAX),
            "state" | "s" => self.shown_state(),
            "path" | "p" => self.shown_path(),
            "back" | "b" | "reset" | "r" | "random" if bad_number => format!("`{}` is not a number\n", rest.trim()),
            "back" | "b" => self.back(number.unwrap_or(1)),
            "reset" | "r" => self.reset(number.unwrap_or(0)),
            "random" => {
                let mut text = String::new();
                // Writing to a string does not fail.
                let _ = self.random(number.unwrap_or(1), &mut |line| {
                    text.push_str(line);
                    Ok(())
                });
                if self.simulator.choices().is_empty() { text } else { text + &self.shown_choices(CHOICES) }
            }
            _ => match line.parse::<usize>() {
                Ok(number) if (1..=self.simulator.choices().len()).contains(&number) => self.take(number - 1),
                Ok(number) => format!("there is no choice {number}{}\n", self.range()),
                Err(_) => self.not_understood(line),
            },
        })
    }

    fn named(&self, name: &str) -> Option<usize> {
        let mut found = self.simulator.choices().iter().enumerate().filter(|(_, choice)| choice.name == name);
        let (number, _) = found.next()?;
        found.next().is_none().then_some(number)
    }

    fn not_understood(&self, line: &str) -> String {
        let names = self.simulator.choices().iter().map(|choice| choice.name.as_str());
        let words = ["list", "state", "path", "back", "reset", "random", "help", "quit"];
        match deltamark::diagnostic::did_you_mean(line, names.chain(words)) {
            Some(close) => {
                format!("`{line}` is neither a command nor a step that can happen now; did you mean `{close}`?\n")
            }
            None => {
                format!("`{line}` is neither a command nor a step that can happen now; `help` lists the commands\n")
            }
        }
    }

    fn range(&self) -> String {
        match self.simulator.choices().len() {
            0 => "; nothing can happen here: `back` or `reset`".into(),
            1 => "; there is only 1".into(),
            count => format!("; they go from 1 to {count}"),
        }
    }

    fn take(&mut self, number: usize) -> String {
        if let Some(fault) = self.simulator.choices().get(number).and_then(|choice| choice.fault.clone()) {
            return format!("that step is a fault of the model and leads nowhere: {fault}\n");
        }
        match self.simulator.take(number) {
            Some(changes) => self.shown_step(&changes) + &self.shown_choices(CHOICES),
            None => format!("there is no such choice{}\n", self.range()),
        }
    }

    fn back(&mut self, count: u64) -> String {
        let mut taken = 0;
        while taken < count && self.simulator.back().is_some() {
            taken += 1;
        }
        match taken {
            0 => "there is nothing to take back\n".into(),
            _ => format!(
                "took back {}\n{}{}",
                show_counted(taken, "step"),
                self.shown_state(),
                self.shown_choices(CHOICES)
            ),
        }
    }

    fn reset(&mut self, number: u64) -> String {
        if !self.simulator.reset(number.try_into().unwrap_or(usize::MAX)) {
            let known = match self.simulator.initial_count() {
                1 => "there is only state 0".into(),
                count => format!("they go from 0 to {}", count - 1),
            };
            return format!("there is no initial state {number}; {known}\n");
        }
        self.shown_state() + &self.shown_choices(CHOICES)
    }

    fn random(&mut self, count: u64, tell: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        for _ in 0..count {
            let choices = self.simulator.choices();
            if choices.is_empty() {
                let steps = show_counted(self.simulator.steps().len() as u64, "step");
                return tell(&format!("deadlock after {steps}: nothing can happen here\n"));
            }
            let number = self.chance.below(choices.len());
            if let Some(fault) = &choices[number].fault {
                return tell(&format!("fault in {}: {fault}\n", choices[number].name));
            }
            if let Some(changes) = self.simulator.take(number) {
                tell(&self.shown_step(&changes))?;
            }
        }
        Ok(())
    }

    fn shown_step(&self, changes: &[(String, Value, Value)]) -> String {
        let (number, name) = (self.simulator.steps().len(), self.simulator.steps().last().map_or("", String::as_str));
        let one = |(name, before, after): &(String, Value, Value)| changed(name, before, after, &self.look);
        let list = if changes.is_empty() { vec!["changes nothing".into()] } else { changes.iter().map(one).collect() };
        let mut text = String::new();
        row(&mut text, &format!("step {number}  {name}  "), &list, &self.look);
        text
    }

    fn shown_state(&self) -> String {
        let state = self.simulator.state();
        let list: Vec<String> = match state.as_slice() {
            [] => vec!["everything is empty".into()],
            words => words.iter().map(|(name, value)| format!("{name}: {value}")).collect(),
        };
        let mut text = String::new();
        row(&mut text, "state  ", &list, &self.look);
        text
    }

    fn shown_choices(&self, most: usize) -> String {
        let choices = self.simulator.choices();
        if choices.is_empty() {
            return "deadlock: nothing can happen here; `back`, `reset` or `quit`\n".into();
        }
        let mut text = String::new();
        for (index, choice) in choices.iter().enumerate().take(most) {
            let fault = choice.fault.as_ref().map(|fault| format!("  (fault: {fault})")).unwrap_or_default();
            let _ = writeln!(text, "  {:>3}  {}{fault}", index + 1, choice.name);
        }
        if choices.len() > most {
            let _ = writeln!(text, "  and {} more; `list` shows them all", choices.len() - most);
        }
        text
    }

    fn shown_path(&self) -> String {
        match self.simulator.steps() {
            [] => "no step was taken yet\n".into(),
            steps => {
                let lines = steps.iter().enumerate().map(|(index, step)| format!("{:>5}  {step}\n", index + 1));
                lines.collect()
            }
        }
    }
}
