//! Inscriptions: tokens taken apart where they are patterns, multisets as terms.

use super::*;
use crate::lexer::wrong;

impl Lowering<'_> {
    /// Adds an expression to the host; its variables as numbers of the frame.
    pub(super) fn host(
        &mut self,
        exp: &Exp,
        ty: u32,
        gives: Gives,
        what: &str,
        frame: &mut Frame,
    ) -> Result<Piece, Wrong> {
        let ready = self.model.ready(exp, ty)?;
        let used = ready.given.iter().map(|(name, of)| frame.var(name, *of)).collect();
        self.expressions.push(HostExpression { ready: Some(ready), gives, what: what.into() });
        Ok(Piece::Host(self.expressions.len() as u32 - 1, used))
    }

    /// A token of a colour set, taken apart as far as it is built of variables and constructors.
    pub(super) fn token(
        &mut self,
        exp: &Exp,
        of: u32,
        taken: bool,
        what: &str,
        frame: &mut Frame,
    ) -> Result<Piece, Wrong> {
        let form = &self.model.colours.get(of).form;
        let form = match form {
            Form::By(of, _) | Form::With(of, _) => &self.model.colours.get(*of).form,
            other => other,
        };
        match (&exp.kind, form) {
            (ExpKind::Name(name), _) => {
                if let Some(entry) = self.model.lookup(name)
                    && let Meaning::NetVar(colour) = entry.meaning
                {
                    return Ok(Piece::Var(frame.var(name, colour)));
                }
            }
            (ExpKind::Typed(inner, _), _) => return self.token(inner, of, taken, what, frame),
            (ExpKind::Tuple(parts), Form::Product(colours)) if parts.len() == colours.len() => {
                let colours = colours.clone();
                let parts = parts.iter().zip(colours).map(|(part, of)| self.token(part, of, taken, what, frame));
                return Ok(Piece::Row(parts.collect::<Result<Vec<_>, _>>()?));
            }
            (ExpKind::Record(given), Form::Record(fields)) if given.len() == fields.len() => {
                let order: Vec<(String, u32)> = field_order(fields).into_iter().map(|at| fields[at].clone()).collect();
                let mut parts = Vec::new();
                for (label, of) in order {
                    if let Some((_, part)) = given.iter().find(|known| known.0 == label) {
                        parts.push(self.token(part, of, taken, what, frame)?);
                    }
                }
                return Ok(Piece::Row(parts));
            }
            (ExpKind::List(parts), Form::List(of, _)) => {
                let of = *of;
                let parts = parts.iter().map(|part| self.token(part, of, taken, what, frame));
                return Ok(Piece::Row(parts.collect::<Result<Vec<_>, _>>()?));
            }
            (ExpKind::App(function, argument), form) => {
                if let ExpKind::Name(name) = &function.kind {
                    match (name.as_str(), &argument.kind, form) {
                        ("::", ExpKind::Tuple(pair), Form::List(element, _)) if pair.len() == 2 => {
                            let element = *element;
                            let head = self.token(&pair[0], element, taken, what, frame)?;
                            let tail = self.token(&pair[1], of, taken, what, frame)?;
                            return Ok(Piece::Cons(Box::new(head), Box::new(tail)));
                        }
                        (_, _, Form::Union(alternatives)) => {
                            if let Some(entry) = self.model.lookup(name)
                                && let Meaning::Con(con, true) = entry.meaning
                                && let Some(at) = alternatives.iter().position(|one| one.0 == con)
                                && let Some(inner) = alternatives[at].1
                            {
                                let argument = self.token(argument, inner, taken, what, frame)?;
                                return Ok(Piece::Row(vec![Piece::Const(Value::Int(at as i32)), argument]));
                            }
                        }
                        (_, _, Form::Index { con, .. }) => {
                            if let Some(entry) = self.model.lookup(name)
                                && matches!(entry.meaning, Meaning::Con(own, true) if own == *con)
                            {
                                // Colour set 0 is that of all integers.
                                return self.token(argument, 0, taken, what, frame);
                            }
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        let ty = self.model.colours.get(of).ty;
        self.host(exp, ty, if taken { Gives::Taken(of) } else { Gives::Token(of) }, what, frame)
    }

    /// The terms of a multiset.
    pub(super) fn terms(
        &mut self,
        exp: &Exp,
        of: u32,
        taken: bool,
        what: &str,
        frame: &mut Frame,
        out: &mut Vec<PieceTerm>,
    ) -> Result<(), Wrong> {
        match &exp.kind {
            ExpKind::Name(name) if name == "empty" => return Ok(()),
            ExpKind::List(items) => {
                for item in items {
                    let token = self.token(item, of, taken, what, frame)?;
                    out.push(PieceTerm { factor: 1, token, spread: false });
                }
                return Ok(());
            }
            ExpKind::App(function, argument) => {
                if let (ExpKind::Name(name), ExpKind::Tuple(pair)) = (&function.kind, &argument.kind)
                    && pair.len() == 2
                {
                    if name == "++" {
                        self.terms(&pair[0], of, taken, what, frame, out)?;
                        return self.terms(&pair[1], of, taken, what, frame, out);
                    }
                    if let ("`", ExpKind::Int(count)) = (name.as_str(), &pair[0].kind) {
                        if *count > 0 {
                            let token = self.token(&pair[1], of, taken, what, frame)?;
                            out.push(PieceTerm { factor: *count, token, spread: false });
                        }
                        return Ok(());
                    }
                }
            }
            _ => {}
        }
        let ty = self.model.colours.get(of).ty;
        let ty = self.model.types.list(ty);
        let gives = if taken { Gives::AllTaken(of) } else { Gives::Tokens(of) };
        let token = self.host(exp, ty, gives, what, frame)?;
        out.push(PieceTerm { factor: 1, token, spread: true });
        Ok(())
    }

    /// The terms of an inscription at a place of this colour set: one token if it has the type of one, else a multiset.
    pub(super) fn inscription(
        &mut self,
        exp: &Exp,
        of: u32,
        taken: bool,
        what: &str,
        frame: &mut Frame,
    ) -> Result<Vec<PieceTerm>, Wrong> {
        let ty = self.model.colours.get(of).ty;
        let set = self.model.types.list(ty);
        // What is produced is checked as a whole where the colour set leaves values out.
        let whole = !taken && self.model.colours.is_restricted(of);
        match self.model.ready(exp, ty) {
            Ok(_) if whole => {
                let token = self.host(exp, ty, Gives::Token(of), what, frame)?;
                Ok(vec![PieceTerm { factor: 1, token, spread: false }])
            }
            Ok(_) => {
                let token = self.token(exp, of, taken, what, frame)?;
                Ok(vec![PieceTerm { factor: 1, token, spread: false }])
            }
            Err(as_token) => {
                if let Err(as_set) = self.model.ready(exp, set) {
                    let operator = matches!(&exp.kind, ExpKind::App(function, _) if matches!(&function.kind, ExpKind::Name(name) if ["`", "++", "--", "**", "%", "//"].contains(&name.as_str())));
                    if let Some(found) = self.model.type_text(exp) {
                        let name = &self.model.colours.get(of).name;
                        let ty = self.model.types.show(ty);
                        let message = format!(
                            "expected the type {ty} of the colour set `{name}`, or a multiset of it; found {found}"
                        );
                        return wrong(exp.at, message);
                    }
                    return Err(if operator { as_set } else { as_token });
                }
                if whole {
                    let token = self.host(exp, set, Gives::Tokens(of), what, frame)?;
                    return Ok(vec![PieceTerm { factor: 1, token, spread: true }]);
                }
                let mut out = Vec::new();
                self.terms(exp, of, taken, what, frame, &mut out)?;
                Ok(out)
            }
        }
    }
}
