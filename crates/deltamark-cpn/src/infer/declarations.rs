//! Declarations at the top, and functions.

use super::*;
use crate::values::Inner;

impl Model {
    /// Declares functions that may call each other, in slots or as globals from a number on.
    pub(super) fn functions(&mut self, functions: &[Vec<Clause>], globals: Option<usize>) -> Done<Vec<Arc<Lambda>>> {
        self.types.level += 1;
        let before = self.names.len();
        let mut types = Vec::new();
        for (number, clauses) in functions.iter().enumerate() {
            let ty = self.types.fresh();
            match globals {
                Some(first) => {
                    let scheme = Scheme { any: Vec::new(), ty };
                    let meaning = Meaning::Global(first + number);
                    self.names.push(clauses[0].name.clone(), Entry { scheme, meaning });
                }
                None => {
                    self.bind(&clauses[0].name, ty);
                }
            }
            types.push(ty);
        }
        let mut lambdas = Vec::new();
        for (clauses, ty) in functions.iter().zip(types) {
            let exp = curried(clauses)?;
            let ExpKind::Fn(rules) = &exp.kind else { return wrong(exp.at, "a function without arguments") };
            let (from, to) = (self.types.fresh(), self.types.fresh());
            let arrow = self.types.arrow(from, to);
            self.unify(ty, arrow, exp.at)?;
            lambdas.push(Arc::new(self.lambda(rules, from, to)?));
        }
        self.settle();
        if globals.is_some() {
            self.finish()?;
        }
        self.types.level -= 1;
        self.generalise(before);
        Ok(lambdas)
    }

    /// Declares what a declaration that is not supported would have declared, so that uses of it are reported with the reason.
    pub fn refuse(&mut self, decs: &[Dec], why: &str) {
        let mut names = Vec::new();
        for dec in decs {
            match dec {
                Dec::Val(bindings) => names.extend(bindings.iter().filter_map(|(pattern, _)| match &pattern.kind {
                    PatKind::Name(name) => Some(name.clone()),
                    _ => None,
                })),
                Dec::Fun(functions) => names.extend(functions.iter().map(|clauses| clauses[0].name.clone())),
                Dec::Globref(name, _) => names.push(name.clone()),
                Dec::Local(_, outer) => self.refuse(outer, why),
                _ => {}
            }
        }
        names.iter().for_each(|name| self.refuse_name(name, why));
    }

    fn refuse_name(&mut self, name: &str, why: &str) {
        let scheme = Scheme { any: Vec::new(), ty: self.int() };
        self.names.push(name.into(), Entry { scheme, meaning: Meaning::Refused(why.into()) });
    }

    /// Declarations at the top.
    pub fn declare(&mut self, decs: &[Dec]) -> Done<()> {
        for dec in decs {
            match dec {
                Dec::Val(bindings) => {
                    for (pattern, value) in bindings {
                        self.declare_val(pattern, value)?;
                    }
                }
                Dec::Fun(functions) => {
                    let first = self.globals.len();
                    self.globals.extend(functions.iter().map(|_| Val::Unit));
                    let before = self.names.len();
                    match self.functions(functions, Some(first)) {
                        Ok(lambdas) => {
                            for (number, lambda) in lambdas.into_iter().enumerate() {
                                let code = Code::Fn(lambda);
                                self.most = 0;
                                self.globals[first + number] = self.value(&code, 0)?;
                            }
                        }
                        Err(wrong) => {
                            self.forget(before);
                            return Err(wrong);
                        }
                    }
                }
                Dec::Exception(name, of) => {
                    let exn = self.basic(5);
                    let of = of.as_ref().map(|of| self.type_of(of, &mut Vec::new())).transpose()?;
                    self.constructor(name, of, exn);
                }
                Dec::Local(inner, outer) => {
                    let before = self.names.len();
                    self.declare(inner)?;
                    let middle = self.names.len();
                    self.declare(outer)?;
                    self.names.remove(before, middle);
                }
                Dec::Type(parameters, name, ty) => {
                    let mut vars = self.parameters_of(parameters);
                    let any = vars.iter().map(|var| var.1).collect();
                    let ty = self.type_of(ty, &mut vars)?;
                    self.type_names.push((name.clone(), Scheme { any, ty }));
                }
                Dec::Datatype(all) => self.declare_datatypes(all)?,
                Dec::Use(_, at) => return wrong(*at, "`use` stands at the top only"),
                Dec::Globref(name, value) => {
                    let ty = self.types.fresh();
                    let value = self.constant(value, ty)?;
                    let ty = self.types.add(Node::Con("ref".into(), vec![ty]));
                    self.global(name, Scheme { any: Vec::new(), ty }, Val::Ref(Inner::new(value)));
                }
                Dec::Vars { names, of, .. } => {
                    let Some(colour) = self.colour(of) else {
                        // Left over, as in CPN Tools: only uses of them are reported.
                        let why = format!("there is no colour set `{of}`, of which it is a variable");
                        names.iter().for_each(|(name, _)| self.refuse_name(name, &why));
                        continue;
                    };
                    let ty = self.colours.get(colour).ty;
                    for (name, _) in names {
                        let scheme = Scheme { any: Vec::new(), ty };
                        self.names.push(name.clone(), Entry { scheme, meaning: Meaning::NetVar(colour) });
                    }
                }
                Dec::Colour { name, spec, timed, declared, at } => {
                    self.declare_colour(name, spec, *timed, *at)?;
                    self.declare_old_names(name, declared);
                }
            }
        }
        Ok(())
    }

    /// A fresh variable for each parameter of a type.
    fn parameters_of(&mut self, names: &[String]) -> Vec<(String, Ty)> {
        self.types.level += 1;
        let vars = names.iter().map(|name| (name.clone(), self.types.fresh())).collect();
        self.types.level -= 1;
        vars
    }

    fn declare_datatypes(&mut self, all: &[DataSpec]) -> Done<()> {
        let mut declared = Vec::new();
        for spec in all {
            let vars = self.parameters_of(&spec.parameters);
            let any: Vec<Ty> = vars.iter().map(|var| var.1).collect();
            let name = self.new_type(&spec.name);
            let ty = self.types.add(Node::Con(name, any.clone()));
            self.type_names.push((spec.name.clone(), Scheme { any, ty }));
            declared.push((vars, ty));
        }
        for (spec, (mut vars, ty)) in all.iter().zip(declared) {
            for (con, of) in &spec.alternatives {
                let of = of.as_ref().map(|of| self.type_of(of, &mut vars)).transpose()?;
                self.constructor(con, of, ty);
            }
        }
        Ok(())
    }

    pub(super) fn declare_val(&mut self, pattern: &Pat, value: &Exp) -> Done<()> {
        let replaced = match &pattern.kind {
            PatKind::Name(name) => self.parameters.iter_mut().find(|known| known.0 == *name).map(|known| {
                known.2 = true;
                known.1.clone()
            }),
            _ => None,
        };
        let parsed = match &replaced {
            Some(text) => Parser::inscription(text).map_err(|wrong| Wrong { at: value.at, ..wrong })?,
            None => None,
        };
        let value = parsed.as_ref().unwrap_or(value);
        let names = self.names.len();
        (self.slots, self.most) = (0, 0);
        self.types.level = 1;
        let result = self.exp(value).and_then(|(code, ty)| {
            self.finish()?;
            Ok((code, ty))
        });
        self.forget(names);
        let (code, ty) = result?;
        let value_of = self.value(&code, value.at)?;
        // The pattern is matched by code that gives each name in turn.
        self.types.level = 1;
        (self.slots, self.most) = (0, 0);
        let (shape, found) = self.pattern(pattern)?;
        let united = self.unify(found, ty, value.at).and_then(|()| self.finish());
        let bound = self.names.split_off(names);
        self.forget(names);
        united?;
        let shape = Arc::new(shape);
        let _ = &shape;
        let mut values = Vec::new();
        {
            let world =
                World { globals: &self.globals, colours: &self.colours, room: &|bytes| self.room.grants(bytes) };
            let slots: Vec<Code> =
                bound
                    .iter()
                    .map(|(_, entry)| {
                        if let Meaning::Local(slot) = entry.meaning {
                            Code::Local(slot)
                        } else {
                            Code::Const(Val::Unit)
                        }
                    })
                    .collect();
            if let Ok(shape) = Arc::try_unwrap(shape) {
                let code = Code::LetVal(shape, Box::new(Code::Const(value_of)), Box::new(Code::List(slots)));
                let found = Machine::new(&world, &[]).run(&code, self.most);
                match found {
                    Ok(found) => values.extend_from_slice(found.items()),
                    Err(halt) => return wrong(value.at, why(&self.colours, &halt)),
                }
            }
        }
        let before = self.names.len();
        for ((name, entry), value) in bound.into_iter().zip(values) {
            self.global(&name, entry.scheme, value);
        }
        self.generalise(before);
        Ok(())
    }
}

/// The clauses of a function as a `fn`: several arguments become nested ones, matched as a tuple in the innermost.
fn curried(clauses: &[Clause]) -> Done<Exp> {
    let first = &clauses[0];
    let count = first.patterns.len();
    if let Some(other) = clauses.iter().find(|clause| clause.patterns.len() != count || clause.name != first.name) {
        return wrong(other.at, format!("the clauses of `{}` differ in their name or number of arguments", first.name));
    }
    let at = first.at;
    let body = |clause: &Clause| match &clause.result {
        Some(ty) => Exp { kind: ExpKind::Typed(Box::new(clause.body.clone()), ty.clone()), at: clause.body.at },
        None => clause.body.clone(),
    };
    if count == 1 {
        let rules = clauses.iter().map(|clause| (clause.patterns[0].clone(), body(clause))).collect();
        return Ok(Exp { kind: ExpKind::Fn(rules), at });
    }
    if let [only] = clauses {
        let mut exp = body(only);
        for pattern in only.patterns.iter().rev() {
            exp = Exp { kind: ExpKind::Fn(vec![(pattern.clone(), exp)]), at };
        }
        return Ok(exp);
    }
    // Names that no model can have.
    let name = |number: usize| format!("argument {number}");
    let tuple =
        Exp { kind: ExpKind::Tuple((0..count).map(|n| Exp { kind: ExpKind::Name(name(n)), at }).collect()), at };
    let rule = |clause: &Clause| (Pat { kind: PatKind::Tuple(clause.patterns.clone()), at: clause.at }, body(clause));
    let mut exp = Exp { kind: ExpKind::Case(Box::new(tuple), clauses.iter().map(rule).collect()), at };
    for number in (0..count).rev() {
        exp = Exp { kind: ExpKind::Fn(vec![(Pat { kind: PatKind::Name(name(number)), at }, exp)]), at };
    }
    Ok(exp)
}
