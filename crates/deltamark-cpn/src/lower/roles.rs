//! Where the values of variables come from.

use super::*;

impl Lowering<'_> {
    /// Decides where the values of variables come from.
    pub(super) fn roles(
        &mut self,
        out: &mut FlatTransition,
        items: &[Exp],
        frame: &mut Frame,
        named: &str,
    ) -> Option<()> {
        let mut bound: BTreeSet<usize> = BTreeSet::new();
        let mut picks: HashMap<usize, PickFrom> = HashMap::new();
        let terms: Vec<(BTreeSet<usize>, BTreeSet<usize>)> = out
            .inputs
            .iter()
            .flat_map(|(_, terms, _)| terms)
            .filter(|term| !term.spread)
            .map(|term| {
                let (mut gives, mut needs) = (BTreeSet::new(), BTreeSet::new());
                term.token.variables(&mut gives, &mut needs);
                (gives, needs)
            })
            .collect();
        loop {
            let count = bound.len();
            for (gives, needs) in &terms {
                let mut fresh = gives.clone();
                fresh.retain(|var| !picks.contains_key(var));
                if needs.iter().all(|var| bound.contains(var) || fresh.contains(var)) {
                    bound.extend(fresh);
                }
            }
            if bound.len() > count {
                continue;
            }
            if bound.len() == frame.names.len() {
                break;
            }
            if self.equation(items, frame, &mut bound, &mut picks, named) {
                continue;
            }
            // The first that is left over, by all its values.
            let next = (0..frame.names.len()).find(|var| !bound.contains(var));
            let Some(var) = next else { break };
            let mut small = None;
            for var in (0..frame.names.len()).filter(|var| !bound.contains(var)) {
                let of = frame.names[var].1;
                let model = &self.model;
                let room = |bytes| model.room.grants(bytes);
                let world = World { globals: &model.globals, colours: &model.colours, room: &room };
                if let Ok(Some(all)) = self.model.colours.small(&mut Machine::new(&world, &[]), of) {
                    small = Some((var, all));
                    break;
                }
            }
            match small {
                Some((var, all)) => {
                    picks.insert(var, PickFrom::All(all));
                    bound.insert(var);
                }
                None => {
                    let (name, of) = &frame.names[var];
                    let colour = &self.model.colours.get(*of).name;
                    let message =
                        format!("{named} cannot bind the variable `{name}` from the large colour set `{colour}`");
                    self.findings.add(|| {
                        Diagnostic::at(out.span, message)
                            .help("an input arc or an equation in the guard must give its value")
                    });
                    return None;
                }
            }
        }
        for (var, (name, of)) in frame.names.iter().enumerate() {
            out.variables.push((name.clone(), *of, picks.remove(&var)));
            // Values that come from the colour set itself are legal.
            if self.model.colours.is_restricted(*of) {
                let what = format!("the variable `{name}`");
                self.expressions.push(HostExpression { ready: None, gives: Gives::Legal(*of), what });
                out.tests.insert(0, (Piece::Host(self.expressions.len() as u32 - 1, vec![var]), true));
            }
        }
        Some(())
    }

    /// Finds an equation of the guard with one side known and a pattern on the other.
    pub(super) fn equation(
        &mut self,
        items: &[Exp],
        frame: &mut Frame,
        bound: &mut BTreeSet<usize>,
        picks: &mut HashMap<usize, PickFrom>,
        named: &str,
    ) -> bool {
        let mut equations = Vec::new();
        for item in items {
            conjuncts(item, &mut equations);
        }
        for (left, right) in equations {
            for (pattern, value) in [(left, right), (right, left)] {
                let mut names = Vec::new();
                let Some(shape) = self.as_pattern(pattern, &mut names) else { continue };
                let unknown = |name: &String| {
                    let at = frame.names.iter().position(|known| known.0 == *name);
                    at.filter(|at| !bound.contains(at))
                };
                let Some((name, var)) = names.iter().find_map(|name| unknown(name).map(|at| (name.clone(), at))) else {
                    continue;
                };
                let of = frame.names[var].1;
                let at = value.at;
                let choice = Exp { kind: ExpKind::List(vec![Exp { kind: ExpKind::Name(name), at }]), at };
                let none = Exp { kind: ExpKind::List(Vec::new()), at };
                let rules = vec![(shape, choice), (Pat { kind: PatKind::Wild, at }, none)];
                let case = Exp { kind: ExpKind::Case(Box::new(value.clone()), rules), at };
                let ty = self.model.colours.get(of).ty;
                let ty = self.model.types.list(ty);
                let Ok(ready) = self.model.ready(&case, ty) else { continue };
                let known = |(name, _): &(String, u32)| {
                    frame.names.iter().position(|known| known.0 == *name).filter(|at| bound.contains(at))
                };
                let Some(used) = ready.given.iter().map(known).collect::<Option<Vec<_>>>() else { continue };
                let what = format!("the guard of {named}");
                self.expressions.push(HostExpression { ready: Some(ready), gives: Gives::Choices(of), what });
                picks.insert(var, PickFrom::Host(self.expressions.len() as u32 - 1, used));
                bound.insert(var);
                return true;
            }
        }
        false
    }

    /// An expression as a pattern, and the variables of the net in it.
    pub(super) fn as_pattern(&self, exp: &Exp, names: &mut Vec<String>) -> Option<Pat> {
        let at = exp.at;
        let mut all = |parts: &[Exp]| parts.iter().map(|part| self.as_pattern(part, names)).collect::<Option<Vec<_>>>();
        let kind = match &exp.kind {
            ExpKind::Int(number) => PatKind::Int(*number),
            ExpKind::Str(text) => PatKind::Str(text.clone()),
            ExpKind::Char(letter) => PatKind::Char(*letter),
            ExpKind::Name(name) => match self.model.lookup(name)?.meaning {
                Meaning::NetVar(_) if names.contains(name) => PatKind::Wild,
                Meaning::NetVar(_) => {
                    names.push(name.clone());
                    PatKind::Name(name.clone())
                }
                Meaning::Con(_, false) | Meaning::Bool(_) => PatKind::Name(name.clone()),
                _ => return None,
            },
            ExpKind::Tuple(parts) => PatKind::Tuple(all(parts)?),
            ExpKind::List(parts) => PatKind::List(all(parts)?),
            ExpKind::Record(fields) => {
                let mut out = Vec::new();
                for (label, part) in fields {
                    out.push((label.clone(), self.as_pattern(part, names)?));
                }
                PatKind::Record(out, false)
            }
            ExpKind::App(function, argument) => {
                let ExpKind::Name(name) = &function.kind else { return None };
                if name == "::" {
                    let ExpKind::Tuple(pair) = &argument.kind else { return None };
                    let mut pair = all(pair)?;
                    let tail = pair.pop()?;
                    PatKind::Cons(Box::new(pair.pop()?), Box::new(tail))
                } else {
                    let Meaning::Con(_, true) = self.model.lookup(name)?.meaning else { return None };
                    PatKind::Apply(name.clone(), Box::new(self.as_pattern(argument, names)?))
                }
            }
            _ => return None,
        };
        Some(Pat { kind, at })
    }
}

/// The equations that must all hold for an expression to be true.
fn conjuncts<'e>(exp: &'e Exp, out: &mut Vec<(&'e Exp, &'e Exp)>) {
    match &exp.kind {
        ExpKind::And(one, other) => {
            conjuncts(one, out);
            conjuncts(other, out);
        }
        ExpKind::App(function, argument) => {
            if let (ExpKind::Name(name), ExpKind::Tuple(pair)) = (&function.kind, &argument.kind)
                && name == "="
                && let [left, right] = pair.as_slice()
            {
                out.push((left, right));
            }
        }
        _ => {}
    }
}
