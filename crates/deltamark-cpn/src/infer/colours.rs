//! Declarations of colour sets.

use super::*;
use crate::colours;

impl Model {
    pub(super) fn declare_colour(&mut self, name: &str, spec: &ColourSpec, timed: bool, at: usize) -> Done<()> {
        let int = self.int();
        let known = |model: &Self, name: &str| -> Done<u32> {
            model.colour(name).map_or_else(|| Err(model.no_colour(name, at)), Ok)
        };
        let range = |model: &mut Self, bounds: &Option<(Exp, Exp)>| -> Done<Option<(i64, i64)>> {
            let Some((low, high)) = bounds else { return Ok(None) };
            let (low, high) = (model.constant(low, int)?.int(), model.constant(high, int)?.int());
            if low > high {
                return wrong(at, format!("the colour set `{name}` has no values: {low} is above {high}"));
            }
            Ok(Some((low, high)))
        };
        let (form, ty) = match spec {
            ColourSpec::Unit(None) => (Form::Unit, self.basic(3)),
            ColourSpec::Unit(Some(one)) => {
                let ty = self.new_con(name);
                (Form::Enum(vec![self.constructor(one, None, ty)]), ty)
            }
            ColourSpec::Bool(None) => (Form::Bool, self.bool()),
            ColourSpec::Bool(Some((no, yes))) => {
                let ty = self.bool();
                for (name, truth) in [(no, false), (yes, true)] {
                    let scheme = Scheme { any: Vec::new(), ty };
                    self.names.push(name.clone(), Entry { scheme, meaning: Meaning::Bool(truth) });
                }
                (Form::Bool, ty)
            }
            ColourSpec::Int(bounds) => (Form::Int(range(self, bounds)?), int),
            ColourSpec::Str(range) => (Form::Str(self.string_range(name, range.as_deref(), at)?), self.basic(1)),
            ColourSpec::Enum(names) => {
                let ty = self.new_con(name);
                (Form::Enum(names.iter().map(|one| self.constructor(one, None, ty)).collect()), ty)
            }
            ColourSpec::Index(con, low, high) => {
                let ty = self.new_con(name);
                let bounds = range(self, &Some((low.clone(), high.clone())))?;
                let (low, high) = bounds.unwrap_or((0, 0));
                (Form::Index { con: self.constructor(con, Some(int), ty), low, high }, ty)
            }
            ColourSpec::Product(parts) => {
                let parts = parts.iter().map(|part| known(self, part)).collect::<Done<Vec<_>>>()?;
                let types = parts.iter().map(|&part| self.colours.get(part).ty).collect();
                (Form::Product(parts), self.types.tuple(types))
            }
            ColourSpec::Record(fields) => {
                let mut out = Vec::new();
                for (label, of) in fields {
                    out.push((label.clone(), known(self, of)?));
                }
                let types = out.iter().map(|(label, of)| (label.clone(), self.colours.get(*of).ty)).collect();
                (Form::Record(out), self.types.record(types))
            }
            ColourSpec::List(of, bounds) => {
                let of = known(self, of)?;
                let element = self.colours.get(of).ty;
                (Form::List(of, range(self, bounds)?), self.types.list(element))
            }
            ColourSpec::Union(alternatives) => {
                let ty = self.new_con(name);
                let mut out = Vec::new();
                for (con, of) in alternatives {
                    let of = of.as_ref().map(|of| known(self, of)).transpose()?;
                    let argument = of.map(|of| self.colours.get(of).ty);
                    out.push((self.constructor(con, argument, ty), of));
                }
                (Form::Union(out), ty)
            }
            ColourSpec::SubsetBy(of, test) => {
                let of = known(self, of)?;
                let ty = self.colours.get(of).ty;
                let bool_ = self.bool();
                let arrow = self.types.arrow(ty, bool_);
                (Form::By(of, self.constant(test, arrow)?), ty)
            }
            ColourSpec::SubsetWith(of, values) => {
                let of = known(self, of)?;
                let ty = self.colours.get(of).ty;
                let wanted = self.types.list(ty);
                let all = self.constant(values, wanted)?;
                let world =
                    World { globals: &self.globals, colours: &self.colours, room: &|bytes| self.room.grants(bytes) };
                let mut machine = Machine::new(&world, &[]);
                let mut out = Vec::new();
                for value in all.items() {
                    match self.colours.to_state(&mut machine, of, value) {
                        Ok(Some(value)) => out.push(value),
                        Ok(None) => return wrong(at, "a value of the subset is outside its colour set"),
                        Err(halt) => return wrong(at, why(&self.colours, &halt)),
                    }
                }
                (Form::With(of, out), ty)
            }
            ColourSpec::Alias(of) => return self.declare_alias(name, of, timed, at),
            ColourSpec::Other(kind) => {
                let ty = self.types.con(if kind == "intinf" { "int" } else { kind });
                (Form::Refused(format!("the colour set `{name}` is of {kind}, which is not supported")), ty)
            }
        };
        self.add_colour(name, form, ty, timed, at)
    }

    fn string_range(
        &mut self,
        name: &str,
        range: Option<&StringRange>,
        at: usize,
    ) -> Done<Option<colours::StringRange>> {
        let Some((low, high, lengths)) = range else { return Ok(None) };
        let string = self.basic(1);
        let letter = |model: &mut Self, exp: &Exp| -> Done<char> {
            let text = model.constant(exp, string)?;
            let mut letters = text.text().chars();
            match (letters.next(), letters.next()) {
                (Some(letter), None) => Ok(letter),
                _ => wrong(at, format!("the characters of the colour set `{name}` are strings of one character")),
            }
        };
        let letters = (letter(self, low)?, letter(self, high)?);
        let lengths = match lengths {
            None => None,
            Some((low, high)) => {
                let int = self.int();
                Some((self.constant(low, int)?.int(), self.constant(high, int)?.int()))
            }
        };
        if letters.0 > letters.1 || lengths.is_some_and(|(low, high)| low > high) {
            return wrong(at, format!("the colour set `{name}` has no values"));
        }
        Ok(Some(colours::StringRange { letters, lengths }))
    }

    /// What Design/CPN calls the functions of a colour set: `mult'C` for `C.mult`, and with `declare ms` the name of the
    /// colour set for all its values.
    pub(super) fn declare_old_names(&mut self, name: &str, declared: &[String]) {
        for (old, new) in [("mult", "mult"), ("ord", "ord"), ("col", "col"), ("lt", "lt"), ("mkst_col", "mkstr")] {
            if let Some(known) = self.lookup(&format!("{name}.{new}")).cloned() {
                self.names.push(format!("{old}'{name}"), known);
            }
        }
        let Some(number) = self.colour(name).filter(|_| declared.iter().any(|word| word == "ms")) else { return };
        let world = World { globals: &self.globals, colours: &self.colours, room: &|bytes| self.room.grants(bytes) };
        if let Ok(Some(all)) = self.colours.all(&mut Machine::new(&world, &[]), number, colours::MOST) {
            let of = self.colours.get(number).ty;
            let ty = self.types.list(of);
            self.global(name, Scheme { any: Vec::new(), ty }, crate::eval::list(all));
        }
    }

    pub(super) fn declare_alias(&mut self, name: &str, of: &str, timed: bool, at: usize) -> Done<()> {
        let Some(known) = self.colour(of) else { return Err(self.no_colour(of, at)) };
        let colour = self.colours.get(known);
        let (ty, timed) = (colour.ty, timed || colour.timed);
        let form = colour.form.clone();
        self.add_colour(name, form, ty, timed, at)
    }

    pub(super) fn add_colour(&mut self, name: &str, form: Form, ty: Ty, timed: bool, at: usize) -> Done<()> {
        let depth = self.colours.depth_of(&form);
        if depth > colours::DEEPEST {
            return wrong(at, format!("the colour set `{name}` is nested too deeply"));
        }
        let product = if let Form::Product(parts) = &form { Some(parts.clone()) } else { None };
        self.colours.list.push(Colour { name: name.into(), form, ty, timed, depth });
        self.name_type(name, ty);
        let number = self.colours.list.len() as u32 - 1;
        self.colour_names.insert(name.into(), number);
        let (unit, int, bool_, string) = (self.basic(3), self.int(), self.bool(), self.basic(1));
        let set = self.types.list(ty);
        let pair = self.types.tuple(vec![ty, ty]);
        let mut functions = vec![
            ("all", ColourFn::All, unit, set),
            ("size", ColourFn::Size, unit, int),
            ("ord", ColourFn::Ord, ty, int),
            ("col", ColourFn::Col, int, ty),
            ("lt", ColourFn::Lt, pair, bool_),
            ("mkstr", ColourFn::MkStr, ty, string),
            ("legal", ColourFn::Legal, ty, bool_),
            ("mkstr_ms", ColourFn::MkStrMs, set, string),
        ];
        if let Some(parts) = product {
            let sets = parts.iter().map(|&part| {
                let of = self.colours.get(part).ty;
                self.types.list(of)
            });
            let sets = sets.collect();
            functions.push(("mult", ColourFn::Mult, self.types.tuple(sets), set));
        }
        for (last, which, from, to) in functions {
            let ty = self.types.arrow(from, to);
            self.global(&format!("{name}.{last}"), Scheme { any: Vec::new(), ty }, Val::Colour(which, number));
        }
        Ok(())
    }
}
