//! Transitions: their variables, and whether these can be bound.
//!
//! In: a transition of the syntax tree. Out: a transition of the net. What stays true: every
//! variable has exactly one role, and there is an order in which all of them get a value.
//!
//! # Variables
//! Those of the inputs are not declared: a name alone as a component of an input tuple, which is no constant,
//! no enumeration value and no variable of the tuple's own `for`, is a variable of the component's type.
//! `pick` and `let` declare theirs. A name alone in an inhibitor that is none of these is a variable of the
//! inhibitors.
//!
//! # Order
//! A tuple without `if` binds the names that are alone in it, as soon as those that it only uses are bound;
//! so do a pick and a let. If this gets stuck, the transition is refused, and the message names a variable
//! that is missing.

use super::check::{Assign, Checker, LocalName, Sight, What};
use super::labels::LabelUse;
use super::syntax::{Arc, Expr, Iteration, Name, Node, TransitionDef, Tuple};
use super::types::{BOOL, INT};
use crate::net::{self, Piece, PlaceId, Role, Transition, TypeId, Var, Variable};
use deltamark_core::{Diagnostic, Span};
use std::collections::{BTreeMap, BTreeSet};

/// A step of the search for a binding.
struct BindingItem<'t> {
    span: Span,
    /// Variables that must be bound before.
    uses: BTreeSet<&'t str>,
    /// Variables that are bound afterwards.
    binds: BTreeSet<&'t str>,
}

/// The variables of a transition.
struct Variables<'t> {
    list: Vec<(Name<'t>, TypeId, Option<Role>)>,
    /// Those whose type comes from a tuple that binds them.
    settled: BTreeSet<&'t str>,
}

impl<'t> Variables<'t> {
    fn has(&self, name: &str) -> bool {
        self.list.iter().any(|(known, ..)| known.text == name)
    }
}

impl<'t> Checker<'t, '_> {
    pub(super) fn transition(&mut self, definition: &TransitionDef<'t>) {
        let name = definition.name;
        if !self.transitions.insert(name.text) {
            self.twice("transition", name);
        }
        self.advice = Some("a variable gets its value alone in an input tuple, from `pick` or from `let`");
        let inputs = self.arc_places(&definition.inputs, "in");
        let outputs = self.arc_places(&definition.outputs, "out");
        let inhibitors = self.arc_places(&definition.inhibitors, "inhibit");

        let mut variables = Variables { list: Vec::new(), settled: BTreeSet::new() };
        for (arc, place) in &inputs {
            self.declare_alone(arc, *place, Role::Bound, &mut variables);
        }
        self.in_scope(&variables);
        let picked = definition.picks.iter().map(|pick| pick.name.text);
        let computed = definition.lets.iter().map(|binding| binding.name.text);
        self.elsewhere = picked.chain(computed).map(|name| (name, "it gets its value further down")).collect();
        self.picks(definition, &mut variables);
        self.lets(definition, &mut variables);
        for (arc, place) in &inhibitors {
            self.declare_alone(arc, *place, Role::Inhibitor, &mut variables);
        }
        let bound_by_tuples = self.check_order(definition, &inputs, &inhibitors, &variables);

        // All variables have their numbers; iterations use those that follow.
        self.frame = u32::try_from(variables.list.len()).unwrap_or(u32::MAX);
        let everywhere = self.locals_of(&variables, |role| *role != Role::Inhibitor);
        let in_inhibitors = self.locals_of(&variables, |_| true);
        let none = BTreeSet::new();
        self.locals.clone_from(&in_inhibitors);
        let inhibitor_arcs = self.lower_arcs(&inhibitors, LabelUse::Matches, &bound_by_tuples);
        self.locals = everywhere;
        let of_inhibitors = variables.list.iter().filter(|(_, _, role)| *role == Some(Role::Inhibitor));
        let reason = "it stands in `inhibit` only, for any value, and has none elsewhere";
        self.elsewhere = of_inhibitors.map(|(name, ..)| (name.text, reason)).collect();
        let input_arcs = self.lower_arcs(&inputs, LabelUse::Matches, &bound_by_tuples);
        let output_arcs = self.lower_arcs(&outputs, LabelUse::Makes, &none);
        let guard = definition.guard.as_ref().map(|guard| self.lower(guard, BOOL).expr);
        let description = definition.description.as_ref().and_then(|(text, values)| self.description(*text, values));
        self.sight = Sight::Marking;
        let priority = definition.priority.as_ref().map(|priority| self.coerce(priority, INT));
        self.sight = Sight::Basic;
        let lowered = variables.list.into_iter().map(|(name, of, role)| Variable {
            name: name.text.into(),
            of,
            role: role.unwrap_or(Role::Bound),
        });
        self.net.transitions.push(Transition {
            name: name.text.into(),
            variables: lowered.collect(),
            frame: self.frame,
            inputs: input_arcs,
            outputs: output_arcs,
            inhibitors: inhibitor_arcs,
            resets: Vec::new(),
            guard,
            priority,
            description,
            span: name.span,
        });
    }

    /// The places of arcs. Each may occur once.
    fn arc_places<'a>(&mut self, arcs: &'a [Arc<'t>], section: &str) -> Vec<(&'a Arc<'t>, PlaceId)> {
        let mut found: Vec<(&'a Arc<'t>, PlaceId)> = Vec::new();
        for arc in arcs {
            let Some(&place) = self.places.get(arc.place.text) else {
                let known: Vec<&str> = self.places.keys().copied().collect();
                self.unknown("place", arc.place.text, arc.place.span, &known);
                continue;
            };
            if found.iter().any(|(_, other)| *other == place) {
                self.findings.add(|| {
                    Diagnostic::at(arc.span, format!("there is already an arc for `{}` in `{section}`", arc.place.text))
                        .help("join the two labels by `+`")
                });
                continue;
            }
            found.push((arc, place));
        }
        found
    }

    /// Declares the names that are alone in the tuples of an arc and otherwise unknown.
    fn declare_alone(&mut self, arc: &Arc<'t>, place: PlaceId, role: Role, variables: &mut Variables<'t>) {
        let domain = self.net.places[place.0 as usize].domain.clone();
        for tuple in &arc.label {
            for (name, position) in alone(tuple) {
                let known = self.constants.contains_key(name.text) || self.enumerated.contains_key(name.text);
                if let Some(&of) = domain.get(position).filter(|_| !known && !variables.has(name.text)) {
                    variables.list.push((name, of, Some(role.clone())));
                }
            }
        }
        // The type is that of a tuple that binds the variable: one under `if` only compares.
        if role == Role::Bound {
            for tuple in arc.label.iter().filter(|tuple| tuple.condition.is_none()) {
                for (name, position) in alone(tuple) {
                    let variable = variables.list.iter_mut().find(|(known, ..)| known.text == name.text);
                    if let (Some((_, of, _)), Some(&found)) = (variable, domain.get(position)) {
                        let same_root = self.types.root(*of) == self.types.root(found);
                        let first = variables.settled.insert(name.text);
                        let larger = self.types.is_discrete(found) && self.types.card(found) > self.types.card(*of);
                        if same_root && (first || larger) {
                            *of = found;
                        }
                    }
                }
            }
        }
    }

    /// Puts all variables so far in scope, with their numbers.
    fn in_scope(&mut self, variables: &Variables<'t>) {
        self.locals = self.locals_of(variables, |_| true);
    }

    fn locals_of(&self, variables: &Variables<'t>, is: impl Fn(&Role) -> bool) -> Vec<LocalName<'t>> {
        let numbered = (0..).map(Var).zip(&variables.list);
        let local = |(var, (name, of, role)): (Var, &(Name<'t>, TypeId, Option<Role>))| {
            let seen = role.as_ref().is_none_or(&is);
            let what = What::Variable(var, Assign::Constant);
            seen.then_some(LocalName { name: name.text, of: *of, what })
        };
        numbered.filter_map(local).collect()
    }

    fn picks(&mut self, definition: &TransitionDef<'t>, variables: &mut Variables<'t>) {
        for pick in &definition.picks {
            if variables.has(pick.name.text) {
                self.twice("variable", pick.name);
                continue;
            }
            let (of, role) = match self.domain(pick) {
                Some((domain, of)) => (of, Some(Role::Pick(domain))),
                None => {
                    // Its type is unknown, so its uses cannot be checked.
                    self.guessing = true;
                    (INT, None)
                }
            };
            variables.list.push((pick.name, of, role));
            self.in_scope(variables);
        }
    }

    fn lets(&mut self, definition: &TransitionDef<'t>, variables: &mut Variables<'t>) {
        for binding in &definition.lets {
            let of = self.type_called(binding.type_name);
            self.guessing |= of.is_none();
            let of = of.unwrap_or(INT);
            if variables.has(binding.name.text) {
                self.twice("variable", binding.name);
                continue;
            }
            let value = self.coerce(&binding.value, of);
            variables.list.push((binding.name, of, Some(Role::Let(value))));
            self.in_scope(variables);
        }
    }

    fn lower_arcs(
        &mut self,
        arcs: &[(&Arc<'t>, PlaceId)],
        side: LabelUse,
        bound_by_tuples: &BTreeSet<&'t str>,
    ) -> Vec<net::Arc> {
        let mut lowered = Vec::new();
        for &(arc, place) in arcs {
            let label = self.label(&arc.label, place, side, bound_by_tuples);
            if !label.is_empty() {
                lowered.push(net::Arc { place, label });
            }
        }
        lowered
    }

    /// Searches an order in which every variable is bound. Returns the variables bound only by tuples with a
    /// `for`, which must be expanded.
    fn check_order(
        &mut self,
        definition: &TransitionDef<'t>,
        inputs: &[(&Arc<'t>, PlaceId)],
        inhibitors: &[(&Arc<'t>, PlaceId)],
        variables: &Variables<'t>,
    ) -> BTreeSet<&'t str> {
        let roles: BTreeMap<&'t str, &Option<Role>> =
            variables.list.iter().map(|(name, _, role)| (name.text, role)).collect();
        let is = |name: &str| roles.contains_key(name);
        let mut items = Vec::new();
        let mut plain = BTreeSet::new();
        for (arc, _) in inputs.iter().chain(inhibitors) {
            for tuple in &arc.label {
                let item = self.item(tuple, &is);
                if tuple.iterations.is_empty() {
                    plain.extend(item.binds.iter().copied());
                }
                items.push(item);
            }
        }
        for pick in &definition.picks {
            let mut uses = BTreeSet::new();
            self.used_by_iteration(pick, &mut uses);
            items.push(BindingItem { span: pick.domain.span, uses, binds: [pick.name.text].into() });
        }
        for binding in &definition.lets {
            let mut uses = BTreeSet::new();
            self.used(&binding.value, &mut uses);
            items.push(BindingItem { span: binding.value.span, uses, binds: [binding.name.text].into() });
        }
        let mut bound: BTreeSet<&'t str> = BTreeSet::new();
        let mut waiting: Vec<&BindingItem<'t>> = items.iter().collect();
        loop {
            let before = waiting.len();
            waiting.retain(|item| {
                let ready = item.uses.iter().all(|name| bound.contains(name) || !is(name) || item.binds.contains(name));
                if ready {
                    bound.extend(item.binds.iter().copied());
                }
                !ready
            });
            if waiting.len() == before {
                break;
            }
        }
        let unbound = waiting.iter().find_map(|item| {
            item.uses.iter().find(|name| is(name) && !bound.contains(*name)).map(|name| (item.span, *name))
        });
        let never = variables.list.iter().find(|(name, ..)| !bound.contains(name.text));
        if let Some((span, missing)) = unbound.or(never.map(|(name, ..)| (name.span, name.text))) {
            let name = definition.name.text;
            self.findings.add(|| {
                Diagnostic::at(
                    span,
                    format!("transition `{name}` cannot be evaluated: nothing gives `{missing}` a value"),
                )
                .help(format!("`{missing}` must stand alone in an input tuple without `if`, or be picked or computed"))
            });
        }
        roles.keys().copied().filter(|name| !plain.contains(name)).collect()
    }

    fn item(&mut self, tuple: &Tuple<'t>, is: &impl Fn(&str) -> bool) -> BindingItem<'t> {
        let own: BTreeSet<&str> = tuple.iterations.iter().map(|iteration| iteration.name.text).collect();
        let mut uses = BTreeSet::new();
        let mut binds = BTreeSet::new();
        for component in tuple.components.iter().flatten() {
            match component.node {
                Node::Name(name) if tuple.condition.is_none() && is(name) && !own.contains(name) => {
                    binds.insert(name);
                }
                _ => self.used(component, &mut uses),
            }
        }
        if let Some(condition) = &tuple.condition {
            self.used(condition, &mut uses);
        }
        // A `for` without values expands to no tuple, so it binds nothing.
        let before = self.findings.count();
        let depth = self.locals.len();
        let empty = tuple.iterations.iter().any(|iteration| {
            let domain = if self.findings.is_full() { None } else { self.domain(iteration) };
            match domain {
                Some((net::Domain::Range(low, high), _)) => {
                    matches!((super::fold::number(&low), super::fold::number(&high)), (Some(low), Some(high)) if low > high)
                }
                _ => false,
            }
        });
        self.locals.truncate(depth);
        self.findings.truncate(before);
        if empty {
            binds.clear();
            uses.clear();
        }
        uses.retain(|name| !own.contains(name));
        BindingItem { span: tuple.span, uses, binds }
    }

    /// The names that an expression uses as values.
    fn used(&self, expr: &Expr<'t>, out: &mut BTreeSet<&'t str>) {
        match &expr.node {
            Node::Name(name) => {
                out.insert(name);
            }
            Node::Number(_) | Node::Empty | Node::Component(..) => {}
            Node::Call(_, parts) | Node::Struct(parts) | Node::Vector(parts) | Node::Container(parts) => {
                parts.iter().for_each(|part| self.used(part, out));
            }
            Node::Binary(_, left, right) | Node::FieldUpdate(left, _, right) => {
                self.used(left, out);
                self.used(right, out);
            }
            Node::Attribute(of, attribute) => {
                let is_type = matches!(of.node, Node::Name(name) if self.type_names.contains_key(name));
                if !(is_type && matches!(attribute.text, "first" | "last" | "card")) {
                    self.used(of, out);
                }
            }
            Node::Unary(_, of) | Node::Field(of, _) => self.used(of, out),
            Node::Conditional(parts) | Node::Slice(parts) => parts.iter().for_each(|part| self.used(part, out)),
            Node::Index(of, index) => {
                self.used(of, out);
                index.iter().for_each(|part| self.used(part, out));
            }
            Node::IndexUpdate(of, index, value) => {
                self.used(of, out);
                self.used(value, out);
                index.iter().for_each(|part| self.used(part, out));
            }
            Node::Quantified(_, iterations, filter, body) => {
                iterations.iter().for_each(|iteration| self.used_by_iteration(iteration, out));
                filter.iter().chain(body).for_each(|part| self.used(part, out));
            }
        }
    }

    fn used_by_iteration(&self, iteration: &Iteration<'t>, out: &mut BTreeSet<&'t str>) {
        let is_type = matches!(iteration.domain.node, Node::Name(name) if self.type_names.contains_key(name));
        if !is_type {
            self.used(&iteration.domain, out);
        }
        if let Some(range) = &iteration.range {
            self.used(&range.low, out);
            self.used(&range.high, out);
        }
    }

    /// Splits a description like that of `printf` into text and values.
    fn description(&mut self, text: Name<'t>, values: &[Expr<'t>]) -> Option<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut given = values.iter();
        let mut wanted = 0;
        let mut rest = text.text;
        while let Some(at) = rest.find('%') {
            plain.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix('%') {
                plain.push('%');
                rest = behind;
                continue;
            }
            let behind = rest.trim_start_matches(|flag: char| flag.is_ascii_digit() || "-+ #.l".contains(flag));
            let Some(conversion) = behind.chars().next().filter(char::is_ascii_alphabetic) else {
                self.findings.add(|| {
                    Diagnostic::at(text.span, "a `%` in a description stands before a letter, as in `%d`")
                        .help("write `%%` for a percent sign")
                });
                return None;
            };
            rest = &behind[conversion.len_utf8()..];
            wanted += 1;
            let Some(value) = given.next() else { continue };
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            let (typed, root) = self.lower_open(value, "a value", |_| true)?;
            pieces.push(Piece::Value(typed.expr, root));
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        if wanted != values.len() {
            let message = format!(
                "the description has {}, but {} given",
                super::lower::counted(wanted, "place for a value").replace("place for a values", "places for values"),
                match values.len() {
                    1 => "1 value is".to_string(),
                    count => format!("{count} values are"),
                }
            );
            self.error(text.span, message);
            return None;
        }
        Some(pieces)
    }
}

/// The names that are alone as components of a tuple, with their positions; not those of its own `for`.
fn alone<'t>(tuple: &Tuple<'t>) -> Vec<(Name<'t>, usize)> {
    let own = |name: &str| tuple.iterations.iter().any(|iteration| iteration.name.text == name);
    let components = tuple.components.iter().flatten().enumerate();
    let name = |(position, component): (usize, &Expr<'t>)| match component.node {
        Node::Name(text) if !own(text) => Some((Name { text, span: component.span }, position)),
        _ => None,
    };
    components.filter_map(name).collect()
}
