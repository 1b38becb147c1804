//! Patterns, and rules of patterns and expressions.

use super::*;

impl Model {
    pub(super) fn pattern(&mut self, pattern: &Pat) -> Done<(Pattern, Ty)> {
        let at = pattern.at;
        Ok(match &pattern.kind {
            PatKind::Wild => (Pattern::Wild, self.types.fresh()),
            PatKind::Int(number) => (Pattern::Int(*number), self.int()),
            PatKind::Str(text) => (Pattern::Str(text.clone()), self.basic(1)),
            PatKind::Char(letter) => (Pattern::Char(*letter), self.basic(4)),
            PatKind::Name(name) => {
                let meaning = self.lookup(name).map(|entry| (entry.meaning.clone(), entry.scheme.clone()));
                match meaning {
                    Some((Meaning::Con(number, false), scheme)) => {
                        (Pattern::Con(number, None), self.types.instance(&scheme))
                    }
                    Some((Meaning::Con(_, true), _)) => return wrong(at, format!("`{name}` needs an argument")),
                    Some((Meaning::Bool(truth), _)) => (Pattern::Bool(truth), self.bool()),
                    _ if name == "nil" => {
                        let of = self.types.fresh();
                        (Pattern::List(Vec::new()), self.types.list(of))
                    }
                    _ => {
                        let ty = self.types.fresh();
                        (Pattern::Bind(self.bind(name, ty)), ty)
                    }
                }
            }
            PatKind::Apply(name, argument) => {
                let entry = self.lookup(name).cloned();
                let Some(Entry { scheme, meaning: Meaning::Con(number, true) }) = entry else {
                    return wrong(at, format!("`{name}` is no constructor with an argument"));
                };
                let function = self.types.instance(&scheme);
                let (inner, of) = self.pattern(argument)?;
                let result = self.types.fresh();
                let wanted = self.types.arrow(of, result);
                self.unify(function, wanted, at)?;
                (Pattern::Con(number, Some(Box::new(inner))), result)
            }
            PatKind::Tuple(parts) => {
                let (mut out, mut types) = (Vec::new(), Vec::new());
                for part in parts {
                    let (part, ty) = self.pattern(part)?;
                    out.push(part);
                    types.push(ty);
                }
                (Pattern::Tuple(out), self.types.tuple(types))
            }
            PatKind::Record(fields, open) => {
                let (mut out, mut types) = (Vec::new(), Vec::new());
                for (label, part) in fields {
                    let (part, ty) = self.pattern(part)?;
                    out.push((label.clone(), part));
                    types.push((label.clone(), ty));
                }
                if *open {
                    let record = self.types.fresh();
                    for (label, field) in types {
                        self.pending.push(Pending { record, label, field, at });
                    }
                    (Pattern::Record(out), record)
                } else if fields.is_empty() {
                    (Pattern::Tuple(Vec::new()), self.basic(3))
                } else {
                    (Pattern::Record(out), self.types.record(types))
                }
            }
            PatKind::List(parts) => {
                let of = self.types.fresh();
                let mut out = Vec::new();
                for part in parts {
                    let (pattern, ty) = self.pattern(part)?;
                    self.unify(of, ty, part.at)?;
                    out.push(pattern);
                }
                (Pattern::List(out), self.types.list(of))
            }
            PatKind::Cons(head, tail) => {
                let (first, of) = self.pattern(head)?;
                let (rest, ty) = self.pattern(tail)?;
                let list = self.types.list(of);
                self.unify(list, ty, tail.at)?;
                (Pattern::Cons(Box::new(first), Box::new(rest)), list)
            }
            PatKind::As(name, inner) => {
                let ty = self.types.fresh();
                let slot = self.bind(name, ty);
                let (inner, of) = self.pattern(inner)?;
                self.unify(ty, of, at)?;
                (Pattern::As(slot, Box::new(inner)), ty)
            }
            PatKind::Typed(inner, ty) => {
                let (pattern, found) = self.pattern(inner)?;
                let wanted = self.type_of(ty, &mut Vec::new())?;
                self.unify(wanted, found, at)?;
                (pattern, wanted)
            }
        })
    }

    /// Rules whose patterns have the type `from` and whose results have the type `to`.
    pub(super) fn rules(&mut self, rules: &[(Pat, Exp)], from: Ty, to: Ty) -> Done<Vec<(Pattern, Code)>> {
        let mut out = Vec::new();
        for (number, (pattern, body)) in rules.iter().enumerate() {
            let (names, slots) = (self.names.len(), self.slots);
            let (shape, ty) = self.pattern(pattern)?;
            self.unify(from, ty, pattern.at)?;
            let (code, ty) = self.exp(body)?;
            match number {
                0 => self.unify(to, ty, body.at)?,
                _ => self.unify_in("the rules give different types", to, ty, body.at)?,
            }
            out.push((shape, code));
            self.names.truncate(names);
            self.slots = slots;
        }
        Ok(out)
    }

    /// A function of these rules; `reserved` slots come before its arguments.
    pub(super) fn lambda(&mut self, rules: &[(Pat, Exp)], from: Ty, to: Ty) -> Done<Lambda> {
        let base = self.slots;
        let most = std::mem::replace(&mut self.most, base);
        let rules = self.rules(rules, from, to)?;
        let size = std::mem::replace(&mut self.most, most);
        Ok(Lambda { rules, base, size })
    }
}
