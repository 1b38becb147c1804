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
enum CodeNode {
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
pub(crate) struct ExprCode {
    nodes: Vec<CodeNode>,
    /// Operands of chains.
    lists: Vec<NodeId>,
    tables: Vec<Vec<i32>>,
    known: HashMap<ExprId, NodeId>,
}

impl ExprCode {
    pub fn new(program: &Program) -> Self {
        ExprCode { tables: program.tables.iter().map(|table| table.values.clone()).collect(), ..ExprCode::default() }
    }

    /// The node of an expression.
    pub fn compile(&mut self, program: &Program, id: ExprId) -> NodeId {
        if let Some(&node) = self.known.get(&id) {
            return node;
        }
        let node = match program.expr(id) {
            Expr::Const(value) => CodeNode::Const(value),
            Expr::Cell(cell) => CodeNode::Cell(cell.0),
            Expr::Element { array, index, .. } => {
                let array = &program.arrays[array.0 as usize];
                match program.expr(index) {
                    Expr::Cell(cell) => CodeNode::ElementAt(array.first.0, array.length, cell.0),
                    _ => CodeNode::Element(array.first.0, array.length, self.compile(program, index)),
                }
            }
            Expr::Lookup { table, index, .. } => CodeNode::Lookup(table.0, self.compile(program, index)),
            Expr::Unary(operator, operand) => CodeNode::Unary(operator, self.compile(program, operand)),
            Expr::Binary(operator, left, right) => match (program.expr(left), program.expr(right)) {
                (Expr::Cell(cell), Expr::Const(value)) => match operator {
                    Binary::Equal => CodeNode::Equal(cell.0, value),
                    Binary::Differ => CodeNode::Differ(cell.0, value),
                    Binary::Less => CodeNode::Less(cell.0, value),
                    Binary::More => CodeNode::More(cell.0, value),
                    _ => CodeNode::CellConst(operator, cell.0, value),
                },
                (Expr::Cell(left), Expr::Cell(right)) => CodeNode::CellCell(operator, left.0, right.0),
                _ => CodeNode::Binary(operator, self.compile(program, left), self.compile(program, right)),
            },
            Expr::Divide { remainder, left, right, .. } => {
                CodeNode::Divide(remainder, self.compile(program, left), self.compile(program, right))
            }
            Expr::And(..) => {
                let (start, end) = self.chain(program, id, true);
                CodeNode::All(start, end)
            }
            Expr::Or(..) => {
                let (start, end) = self.chain(program, id, false);
                CodeNode::Some(start, end)
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
            CodeNode::Const(value) => value,
            CodeNode::Cell(cell) => values[cell as usize],
            CodeNode::Equal(cell, value) => i32::from(values[cell as usize] == value),
            CodeNode::Differ(cell, value) => i32::from(values[cell as usize] != value),
            CodeNode::Less(cell, value) => i32::from(values[cell as usize] < value),
            CodeNode::More(cell, value) => i32::from(values[cell as usize] > value),
            CodeNode::CellConst(operator, cell, value) => arithmetic::binary(operator, values[cell as usize], value),
            CodeNode::CellCell(operator, left, right) => {
                arithmetic::binary(operator, values[left as usize], values[right as usize])
            }
            CodeNode::Binary(operator, left, right) => {
                let left = self.value(left, values)?;
                arithmetic::binary(operator, left, self.value(right, values)?)
            }
            CodeNode::Unary(operator, operand) => arithmetic::unary(operator, self.value(operand, values)?),
            CodeNode::Element(first, length, index) => element(values, first, length, self.value(index, values)?)?,
            CodeNode::ElementAt(first, length, cell) => element(values, first, length, values[cell as usize])?,
            CodeNode::Lookup(table, index) => {
                let index = self.value(index, values)?;
                let table = &self.tables[table as usize];
                *usize::try_from(index).ok().and_then(|index| table.get(index)).ok_or(Failed)?
            }
            CodeNode::Divide(remainder, left, right) => {
                let left = self.value(left, values)?;
                arithmetic::divide(remainder, left, self.value(right, values)?).ok_or(Failed)?
            }
            CodeNode::All(start, end) => {
                for &operand in &self.lists[start as usize..end as usize] {
                    if self.value(operand, values)? == 0 {
                        return Ok(0);
                    }
                }
                1
            }
            CodeNode::Some(start, end) => {
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
