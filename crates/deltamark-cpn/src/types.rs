//! Types, and their unification.
//!
//! Types are numbers of nodes. Variables have the level of the declaration they belong to, so that what may be
//! generalised is known by comparing levels (Rémy's method). A variable of an equality type stands for types without
//! functions and exceptions in them.

/// A type.
pub(crate) type Ty = u32;

#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Unknown: its level, and whether its values must have an equality.
    Var(u32, bool),
    /// The same as another.
    Same(Ty),
    /// A named type and its arguments.
    Con(String, Vec<Ty>),
    /// A record, labels ascending; a tuple has the labels 1, 2, ….
    Record(Vec<(String, Ty)>),
    Arrow(Ty, Ty),
}

/// A type with variables that stand for any.
#[derive(Clone, Debug)]
pub(crate) struct Scheme {
    pub any: Vec<Ty>,
    pub ty: Ty,
}

/// All types of a model.
#[derive(Debug, Default)]
pub(crate) struct Types {
    pub nodes: Vec<Node>,
    pub level: u32,
    /// The most nodes, if memory is limited.
    pub most: Option<usize>,
}

/// The most nodes of types: inference can take exponential space.
pub(crate) const MOST_NODES: usize = 4_000_000;

/// The name of a type as declared: a second one of the same name has a number behind it.
fn plain(name: &str) -> &str {
    name.split('#').next().unwrap_or(name)
}

/// The order of labels: numbers by size, before names.
pub(crate) fn label_order(one: &str, other: &str) -> std::cmp::Ordering {
    let key = |label: &str| label.parse::<u64>().map_or((1, 0), |number| (0, number));
    key(one).cmp(&key(other)).then_with(|| one.cmp(other))
}

impl Types {
    pub fn add(&mut self, node: Node) -> Ty {
        self.nodes.push(node);
        self.nodes.len() as Ty - 1
    }

    /// Whether inference has become too large.
    pub fn is_full(&self) -> bool {
        self.nodes.len() > self.most.unwrap_or(MOST_NODES)
    }

    pub fn fresh(&mut self) -> Ty {
        self.add(Node::Var(self.level, false))
    }

    /// A fresh variable whose values have an equality.
    pub fn fresh_equal(&mut self) -> Ty {
        self.add(Node::Var(self.level, true))
    }

    pub fn con(&mut self, name: &str) -> Ty {
        self.add(Node::Con(name.into(), Vec::new()))
    }

    pub fn list(&mut self, of: Ty) -> Ty {
        self.add(Node::Con("list".into(), vec![of]))
    }

    pub fn tuple(&mut self, parts: Vec<Ty>) -> Ty {
        if parts.is_empty() {
            return self.con("unit");
        }
        self.add(Node::Record(parts.into_iter().enumerate().map(|(at, ty)| ((at + 1).to_string(), ty)).collect()))
    }

    pub fn record(&mut self, mut fields: Vec<(String, Ty)>) -> Ty {
        if fields.is_empty() {
            return self.con("unit");
        }
        fields.sort_by(|one, other| label_order(&one.0, &other.0));
        self.add(Node::Record(fields))
    }

    pub fn arrow(&mut self, from: Ty, to: Ty) -> Ty {
        self.add(Node::Arrow(from, to))
    }

    pub fn find(&self, mut ty: Ty) -> Ty {
        while let Node::Same(other) = self.nodes[ty as usize] {
            ty = other;
        }
        ty
    }

    pub fn node(&self, ty: Ty) -> &Node {
        &self.nodes[self.find(ty) as usize]
    }

    /// Whether `var` is inside `ty`; lowers levels on the way.
    fn occurs(&mut self, var: Ty, level: u32, ty: Ty) -> bool {
        let mut waiting = vec![ty];
        let mut visits = 0;
        while let Some(ty) = waiting.pop() {
            visits += 1;
            if visits > 1_000_000 {
                return true;
            }
            let ty = self.find(ty);
            if ty == var {
                return true;
            }
            match &mut self.nodes[ty as usize] {
                Node::Var(own, _) => *own = (*own).min(level),
                Node::Con(_, parts) => waiting.extend(parts.iter()),
                Node::Record(fields) => waiting.extend(fields.iter().map(|field| field.1)),
                Node::Arrow(from, to) => waiting.extend([*from, *to]),
                Node::Same(_) => {}
            }
        }
        false
    }

    /// Demands that the values of a type have an equality; false if they cannot.
    fn demand_equality(&mut self, ty: Ty, trail: &mut Vec<(Ty, Node)>) -> bool {
        let mut waiting = vec![ty];
        let mut visits = 0;
        while let Some(ty) = waiting.pop() {
            visits += 1;
            if visits > 1_000_000 {
                return false;
            }
            let ty = self.find(ty);
            match &self.nodes[ty as usize] {
                Node::Var(level, false) => {
                    let level = *level;
                    trail.push((ty, Node::Var(level, false)));
                    self.nodes[ty as usize] = Node::Var(level, true);
                }
                Node::Arrow(..) => return false,
                Node::Con(name, _) if name == "exn" => return false,
                // References are equal if they are one.
                Node::Con(name, _) if name == "ref" => {}
                Node::Con(_, parts) => waiting.extend(parts.iter()),
                Node::Record(fields) => waiting.extend(fields.iter().map(|field| field.1)),
                Node::Var(_, true) | Node::Same(_) => {}
            }
        }
        true
    }

    /// Makes two types one; false if they differ. Every change is appended to `trail`.
    pub fn unify(&mut self, one: Ty, other: Ty, trail: &mut Vec<(Ty, Node)>) -> bool {
        let mut waiting = vec![(one, other)];
        let mut visits = 0;
        while let Some((one, other)) = waiting.pop() {
            visits += 1;
            if visits > 1_000_000 {
                return false;
            }
            let (one, other) = (self.find(one), self.find(other));
            if one == other {
                continue;
            }
            match (self.nodes[one as usize].clone(), self.nodes[other as usize].clone()) {
                (Node::Var(level, equal), _) => {
                    if self.occurs(one, level, other) || equal && !self.demand_equality(other, trail) {
                        return false;
                    }
                    trail.push((one, Node::Var(level, equal)));
                    self.nodes[one as usize] = Node::Same(other);
                }
                (_, Node::Var(level, equal)) => {
                    if self.occurs(other, level, one) || equal && !self.demand_equality(one, trail) {
                        return false;
                    }
                    trail.push((other, Node::Var(level, equal)));
                    self.nodes[other as usize] = Node::Same(one);
                }
                (Node::Con(a, x), Node::Con(b, y)) => {
                    if a != b || x.len() != y.len() {
                        return false;
                    }
                    waiting.extend(x.into_iter().zip(y));
                }
                (Node::Record(x), Node::Record(y)) => {
                    if x.len() != y.len() || x.iter().zip(&y).any(|(x, y)| x.0 != y.0) {
                        return false;
                    }
                    waiting.extend(x.into_iter().zip(y).map(|(x, y)| (x.1, y.1)));
                }
                (Node::Arrow(a, b), Node::Arrow(c, d)) => waiting.extend([(b, d), (a, c)]),
                _ => return false,
            }
        }
        true
    }

    /// Takes changes back.
    pub fn undo(&mut self, trail: Vec<(Ty, Node)>) {
        for (ty, node) in trail.into_iter().rev() {
            self.nodes[ty as usize] = node;
        }
    }

    /// The unknown variables inside a type.
    pub fn variables(&self, ty: Ty, out: &mut Vec<Ty>) {
        let mut waiting = vec![ty];
        let mut visits = 0;
        while let Some(ty) = waiting.pop() {
            visits += 1;
            if visits > 1_000_000 {
                return;
            }
            let ty = self.find(ty);
            match &self.nodes[ty as usize] {
                Node::Var(..) if !out.contains(&ty) => out.push(ty),
                Node::Con(_, parts) => waiting.extend(parts.iter()),
                Node::Record(fields) => waiting.extend(fields.iter().map(|field| field.1)),
                Node::Arrow(from, to) => waiting.extend([*from, *to]),
                Node::Var(..) | Node::Same(_) => {}
            }
        }
    }

    /// A copy with fresh variables.
    pub fn instance(&mut self, scheme: &Scheme) -> Ty {
        if scheme.any.is_empty() {
            return scheme.ty;
        }
        let map: Vec<(Ty, Ty)> = scheme.any.iter().map(|&any| (any, self.fresh_like(any))).collect();
        self.copy(scheme.ty, &map, 0)
    }

    /// A type with arguments for its parameters.
    pub fn applied(&mut self, scheme: &Scheme, arguments: &[Ty]) -> Ty {
        let map: Vec<(Ty, Ty)> = scheme.any.iter().copied().zip(arguments.iter().copied()).collect();
        if map.is_empty() { scheme.ty } else { self.copy(scheme.ty, &map, 0) }
    }

    fn fresh_like(&mut self, var: Ty) -> Ty {
        if let Node::Var(_, true) = self.node(var) { self.fresh_equal() } else { self.fresh() }
    }

    fn copy(&mut self, ty: Ty, map: &[(Ty, Ty)], depth: u32) -> Ty {
        let ty = self.find(ty);
        if depth > 300 || self.is_full() {
            return ty;
        }
        match self.nodes[ty as usize].clone() {
            Node::Var(..) | Node::Same(_) => map.iter().find(|known| known.0 == ty).map_or(ty, |known| known.1),
            Node::Con(_, parts) if parts.is_empty() => ty,
            Node::Con(name, parts) => {
                let parts = parts.into_iter().map(|part| self.copy(part, map, depth + 1)).collect();
                self.add(Node::Con(name, parts))
            }
            Node::Record(fields) => {
                let fields = fields.into_iter().map(|(label, ty)| (label, self.copy(ty, map, depth + 1))).collect();
                self.add(Node::Record(fields))
            }
            Node::Arrow(from, to) => {
                let (from, to) = (self.copy(from, map, depth + 1), self.copy(to, map, depth + 1));
                self.add(Node::Arrow(from, to))
            }
        }
    }

    /// A type as people write it.
    pub fn show(&self, ty: Ty) -> String {
        self.show_at(ty, 0, false)
    }

    fn show_at(&self, ty: Ty, depth: u32, inside: bool) -> String {
        if depth > 6 {
            return "…".into();
        }
        match self.node(ty) {
            Node::Var(_, true) => "''a".into(),
            Node::Var(..) | Node::Same(_) => "'a".into(),
            Node::Con(name, parts) => match parts.as_slice() {
                [] => plain(name).into(),
                parts => {
                    let parts: Vec<String> = parts.iter().map(|&part| self.show_at(part, depth + 1, true)).collect();
                    let several = if parts.len() > 1 { format!("({})", parts.join(", ")) } else { parts.join("") };
                    format!("{several} {}", plain(name))
                }
            },
            Node::Record(fields) if fields[0].0 == "1" => {
                let parts: Vec<String> = fields.iter().map(|field| self.show_at(field.1, depth + 1, true)).collect();
                let text = parts.join(" * ");
                if inside { format!("({text})") } else { text }
            }
            Node::Record(fields) => {
                let part = |field: &(String, Ty)| format!("{}: {}", field.0, self.show_at(field.1, depth + 1, false));
                format!("{{{}}}", fields.iter().map(part).collect::<Vec<_>>().join(", "))
            }
            Node::Arrow(from, to) => {
                let text =
                    format!("{} -> {}", self.show_at(*from, depth + 1, true), self.show_at(*to, depth + 1, false));
                if inside { format!("({text})") } else { text }
            }
        }
    }
}
