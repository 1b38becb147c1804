//! Expressions of the interpreter.
//!
//! In: expressions of the intermediate representation. Out: nodes in one vector, in which the common patterns (a
//! cell compared with a constant, an element indexed by a cell, a long chain of `and`) are one node each. What
//! stays true: operands have smaller numbers than their node; every check of the language is made, whatever the
//! analysis has proved, because the interpreter is the oracle.

use crate::arithmetic;
use crate::ir::{Binary, Expr, ExprId, Program, Unary};
use std::collections::HashMap;

/// The evaluation of an expression failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed;

/// The number of a node.
pub(crate) type NodeId = u32;

#[derive(Clone, Copy, Debug)]
enum Node {
    Const(i32),
    Cell(u32),
    Equal(u32, i32),
    Differ(u32, i32),
    Less(u32, i32),
    More(u32, i32),
    CellConst(Binary, u32, i32),
    CellCell(Binary, u32, u32),
    Binary(Binary, NodeId, NodeId),
    Unary(Unary, NodeId),
    /// First cell, length, index.
    Element(u32, u32, NodeId),
    /// The same, with the cell that holds the index.
    ElementAt(u32, u32, u32),
    /// Table and index.
    Lookup(u32, NodeId),
    Divide(bool, NodeId, NodeId),
    /// Whether all, or some, of the nodes in this range of `lists` are non-zero.
    All(u32, u32),
    Some(u32, u32),
}

/// Expressions, ready to be evaluated.
#[derive(Default)]
pub(crate) struct Code {
    nodes: Vec<Node>,
    /// Operands of chains.
    lists: Vec<NodeId>,
    tables: Vec<Vec<i32>>,
    known: HashMap<ExprId, NodeId>,
}

impl Code {
    pub fn new(program: &Program) -> Self {
        Code { tables: program.tables.iter().map(|table| table.values.clone()).collect(), ..Code::default() }
    }

    /// The node of an expression.
    pub fn compile(&mut self, program: &Program, id: ExprId) -> NodeId {
        if let Some(&node) = self.known.get(&id) {
            return node;
        }
        let node = match program.expr(id) {
            Expr::Const(value) => Node::Const(value),
            Expr::Cell(cell) => Node::Cell(cell.0),
            Expr::Element { array, index, .. } => {
                let array = &program.arrays[array.0 as usize];
                match program.expr(index) {
                    Expr::Cell(cell) => Node::ElementAt(array.first.0, array.length, cell.0),
                    _ => Node::Element(array.first.0, array.length, self.compile(program, index)),
                }
            }
            Expr::Lookup { table, index, .. } => Node::Lookup(table.0, self.compile(program, index)),
            Expr::Unary(operator, operand) => Node::Unary(operator, self.compile(program, operand)),
            Expr::Binary(operator, left, right) => match (program.expr(left), program.expr(right)) {
                (Expr::Cell(cell), Expr::Const(value)) => match operator {
                    Binary::Equal => Node::Equal(cell.0, value),
                    Binary::Differ => Node::Differ(cell.0, value),
                    Binary::Less => Node::Less(cell.0, value),
                    Binary::More => Node::More(cell.0, value),
                    _ => Node::CellConst(operator, cell.0, value),
                },
                (Expr::Cell(left), Expr::Cell(right)) => Node::CellCell(operator, left.0, right.0),
                _ => Node::Binary(operator, self.compile(program, left), self.compile(program, right)),
            },
            Expr::Divide { remainder, left, right, .. } => {
                Node::Divide(remainder, self.compile(program, left), self.compile(program, right))
            }
            Expr::And(..) => {
                let (start, end) = self.chain(program, id, true);
                Node::All(start, end)
            }
            Expr::Or(..) => {
                let (start, end) = self.chain(program, id, false);
                Node::Some(start, end)
            }
        };
        let number = self.nodes.len() as NodeId;
        self.nodes.push(node);
        self.known.insert(id, number);
        number
    }

    /// Lists the operands of a chain of `and` or of `or`, left to right.
    fn chain(&mut self, program: &Program, id: ExprId, and: bool) -> (u32, u32) {
        let mut operands = Vec::new();
        let mut rest = vec![id];
        while let Some(id) = rest.pop() {
            match program.expr(id) {
                Expr::And(left, right) if and => rest.extend([right, left]),
                Expr::Or(left, right) if !and => rest.extend([right, left]),
                _ => operands.push(self.compile(program, id)),
            }
        }
        let start = self.lists.len() as u32;
        self.lists.extend(operands);
        (start, self.lists.len() as u32)
    }

    /// Whether it is non-zero.
    #[inline]
    pub fn holds(&self, node: NodeId, values: &[i32]) -> Result<bool, Failed> {
        Ok(self.value(node, values)? != 0)
    }

    /// Its value.
    pub fn value(&self, node: NodeId, values: &[i32]) -> Result<i32, Failed> {
        Ok(match self.nodes[node as usize] {
            Node::Const(value) => value,
            Node::Cell(cell) => values[cell as usize],
            Node::Equal(cell, value) => i32::from(values[cell as usize] == value),
            Node::Differ(cell, value) => i32::from(values[cell as usize] != value),
            Node::Less(cell, value) => i32::from(values[cell as usize] < value),
            Node::More(cell, value) => i32::from(values[cell as usize] > value),
            Node::CellConst(operator, cell, value) => arithmetic::binary(operator, values[cell as usize], value),
            Node::CellCell(operator, left, right) => {
                arithmetic::binary(operator, values[left as usize], values[right as usize])
            }
            Node::Binary(operator, left, right) => {
                let left = self.value(left, values)?;
                arithmetic::binary(operator, left, self.value(right, values)?)
            }
            Node::Unary(operator, operand) => arithmetic::unary(operator, self.value(operand, values)?),
            Node::Element(first, length, index) => element(values, first, length, self.value(index, values)?)?,
            Node::ElementAt(first, length, cell) => element(values, first, length, values[cell as usize])?,
            Node::Lookup(table, index) => {
                let index = self.value(index, values)?;
                let table = &self.tables[table as usize];
                *usize::try_from(index).ok().and_then(|index| table.get(index)).ok_or(Failed)?
            }
            Node::Divide(remainder, left, right) => {
                let left = self.value(left, values)?;
                arithmetic::divide(remainder, left, self.value(right, values)?).ok_or(Failed)?
            }
            Node::All(start, end) => {
                for &operand in &self.lists[start as usize..end as usize] {
                    if self.value(operand, values)? == 0 {
                        return Ok(0);
                    }
                }
                1
            }
            Node::Some(start, end) => {
                for &operand in &self.lists[start as usize..end as usize] {
                    if self.value(operand, values)? != 0 {
                        return Ok(1);
                    }
                }
                0
            }
        })
    }
}

#[inline]
fn element(values: &[i32], first: u32, length: u32, index: i32) -> Result<i32, Failed> {
    if (index as u32) < length { Ok(values[(first + index as u32) as usize]) } else { Err(Failed) }
}
