//! The property language.
//!
//! In: the text of an expression or of a property file, and the observables of the model
//! ([`Observe`](deltamark_core::Observe)). Out: [`Compiled`], a [`Predicate`](deltamark_core::Predicate) that is
//! evaluated for a block of states at a time, or diagnostics with spans. What stays true: no text makes this crate
//! panic, overflow the stack or take memory out of proportion to its length.
//!
//! ```text
//! text ─token─▶ tokens ─parse─▶ Expr ─check─▶ Program ─evaluate─▶ a bit for each state
//! ```
//!
//! # Grammar
//! Loosest operator first; everything on one line binds equally.
//!
//! ```text
//! expr       = implied { iff implied }                  iff      <->  <=>
//! implied    = either [ implies implied ]               implies  ->   =>     right-associative
//! either     = both { or both }                         or       ||   |
//! both       = negated { and negated }                  and      &&   &
//! negated    = not negated | compared                   not      !
//! compared   = sum [ comparison sum ]                   = == != <> < <= > >=  does not chain
//! sum        = product { (+ | -) product }
//! product    = signed { (* | / | %) signed }
//! signed     = - signed | atom
//! atom       = number | true | false | deadlock | name | ( expr )
//!            | fireable( name {, name} )                some of these transitions can fire
//!            | tokens( name {, name} )                  the sum of these numbers
//! name       = word { .word | ->word | ->number | [number] }   without spaces: P_0.CS  P->x  p->1  a[0]
//!            | "any text" | 'any text'                  escapes: \" \' \\ \n \r \t
//! comment    = # up to the end of the line
//! ```
//!
//! `not` binds looser than comparisons, so `not p = 1` is `not (p = 1)`. `a->b` without
//! spaces is one name, as languages with processes write it; `a -> b` is an implication.
//! `true`, `false`, `deadlock` and the operators' words are names only when quoted;
//! `fireable` and `tokens` are special only before a parenthesis.
//!
//! Temporal formulas ([`parse_temporal`], [`temporal`]) have more operators. They are words, so that names of these
//! letters must be quoted there; everywhere else they are names as ever.
//!
//! ```text
//! both       = until { and until }
//! until      = negated [ (U | R | W | M) until ]        right-associative
//! negated    = not negated | compared
//!            | (X | F | G | [] | <>) negated            also written together: GF p
//!            | (A | E) negated | (A | E) [ expr ]       AG p, A[p U q]
//! atom       = ... | initial                            the state is an initial one
//! ```
//!
//! # Semantics
//! Numbers are 64-bit integers. `/` rounds towards zero and `%` has the sign of the dividend. `deadlock` is true
//! in states without successors. `and`, `or` and `implies` short-circuit, so `q != 0 and p / q > 1` is defined
//! where `q` is 0. If an overflow or a division by zero does matter, the expression has no value, and
//! [`Undefined`](deltamark_core::property::Undefined) names the state.
//!
//! `=` and `!=` compare numbers with numbers or truth values with truth values. There is no conversion between the
//! two.
//!
//! # Example
//! ```
//! let expr = deltamark_logic::parse("not (busy & idle >= 2) => deadlock").unwrap();
//! assert_eq!(expr.to_string(), "not (busy and idle >= 2) implies deadlock");
//!
//! let wrong = deltamark_logic::parse("1 <= p <= 3").unwrap_err();
//! assert_eq!(wrong[0].help.as_deref(), Some("write `1 <= p and p <= 3`"));
//! ```

mod ast;
pub mod automaton;
mod check;
mod file;
mod formula;
pub mod kripke;
mod lanes;
pub mod local;
mod measure;
mod parse;
mod pattern;
mod print;
mod program;
mod property;
mod room;
pub mod temporal;
mod token;

pub use ast::{Arithmetic, Comparison, Expr, Name, Node, PathOperator, PathQuantifier, UntilOperator};
pub use check::compile;
pub use file::{Asked, MAX_FILE_LENGTH, parse_file, parse_file_under};
pub use measure::{MAX_PARTS, measure};
pub use parse::{MAX_DEPTH, MAX_LENGTH, parse, parse_temporal};
pub use program::{Compiled, Meaning};
pub use property::{PropertyKind, invariant, reachable};
pub use room::room;
pub use token::quote;
