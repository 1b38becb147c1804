//! Packing: what goes in comes out, in as many bits as promised.

use deltamark::Pack;
use deltamark::pack::{Packer, Unpacker, Value, pack, unpack};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;

#[derive(Clone, Debug, PartialEq, Pack)]
struct Unit;

#[derive(Clone, Debug, PartialEq, Pack)]
struct Pair(bool, #[pack(bits = 3)] i8);

#[derive(Clone, Debug, PartialEq, Pack)]
enum Only {
    One,
}

#[derive(Clone, Debug, PartialEq, Pack)]
enum Message {
    Hello,
    Data {
        #[pack(bits = 4)]
        number: u32,
        last: bool,
    },
    Ack(#[pack(bits = 4)] u8),
}

#[derive(Clone, Debug, PartialEq, Pack)]
struct Process<T, const N: usize> {
    r#type: Message,
    #[pack(bits = 2)]
    levels: [u8; N],
    #[pack(bits = 5)]
    maybe: Option<usize>,
    inner: T,
}

#[derive(Clone, Debug, PartialEq, Pack)]
enum Tree {
    Leaf,
    Node(Box<Tree>, u8, Box<Tree>),
}

#[derive(Clone, Debug, PartialEq, Pack)]
struct Channel {
    #[pack(bits = 3)]
    sent: Vec<u8>,
    waiting: VecDeque<Message>,
    names: BTreeMap<u8, String>,
    marks: BTreeSet<char>,
}

/// The bits that a value takes, after checking that it comes back out.
fn bits<T: Pack + PartialEq>(value: T) -> u64 {
    let mut packer = Packer::of::<T>();
    value.pack(&mut packer);
    let position = packer.position();
    let slots = packer.finish().expect("it fits").to_vec();
    let mut unpacker = Unpacker::of::<T>(&slots);
    assert_eq!(T::unpack(&mut unpacker), value);
    assert_eq!(unpacker.position(), position, "as much is read as was written: {value:?}");
    assert!(T::BITS.is_none_or(|bits| u64::from(bits) == position), "{value:?} takes what its type promises");
    position
}

#[test]
fn values_take_as_many_bits_as_they_need() {
    let cases = [
        (bits(()), 0),
        (bits(Unit), 0),
        (bits(Only::One), 0),
        (bits(true), 1),
        (bits(200u8), 8),
        (bits(-1i64), 64),
        (bits(usize::MAX), 64),
        (bits('ß'), 21),
        (bits((true, 7u16, ())), 17),
        (bits([true; 40]), 40),
        (bits(Some(3u8)), 9),
        (bits(None::<u8>), 9),
        (bits(Pair(true, -4)), 4),
        (bits(Message::Hello), 2 + 5),
        (bits(Message::Data { number: 15, last: true }), 2 + 5),
        (bits(Message::Ack(9)), 2 + 5),
        (
            bits(Process { r#type: Message::Hello, levels: [3, 0, 1], maybe: Some(31), inner: Pair(false, 3) }),
            7 + 6 + 6 + 4,
        ),
        (bits(Vec::<u8>::new()), 4),
        (bits(vec![1u8; 7]), 4 + 56),
        (bits(vec![(); 8]), 8),
        (bits(vec![(); 64]), 12),
        // Where the width varies anyway, integers and variants take what they need.
        (bits(vec![15usize]), 4 + 2 + 4),
        (bits(vec![255u32]), 4 + 2 + 8),
        (bits(vec![256u64]), 4 + 2 + 16),
        (bits(vec![1u32 << 16]), 4 + 2 + 32),
        (bits(vec![u64::MAX]), 4 + 2 + 64),
        (bits(vec![-8i32]), 4 + 2 + 4),
        (bits(vec![8i64]), 4 + 2 + 8),
        (bits(vec![i64::MIN]), 4 + 2 + 64),
        (bits((9usize, Vec::<u8>::new())), 2 + 4 + 4),
        (bits(vec![Message::Hello, Message::Ack(9)]), 4 + 2 + 2 + 4),
        (bits(vec![None::<u64>, Some(1)]), 4 + 1 + 1 + 6),
        (bits(Tree::Node(Box::new(Tree::Leaf), 5, Box::new(Tree::Leaf))), 1 + 1 + 8 + 1),
    ];
    for (number, (found, expected)) in cases.into_iter().enumerate() {
        assert_eq!(found, expected, "case {number}");
    }
}

#[test]
fn types_know_whether_their_width_is_fixed() {
    assert_eq!(Process::<u16, 4>::BITS, Some(7 + 8 + 6 + 16));
    assert_eq!(Process::<Vec<u8>, 4>::BITS, None);
    assert_eq!((Tree::BITS, Channel::BITS, Message::BITS), (None, None, Some(7)));
}

/// Why a value cannot be packed.
fn misfit<T: Pack>(value: T) -> String {
    pack(&value).expect_err("it does not fit")
}

#[test]
fn what_does_not_fit_is_named_and_never_cut_short() {
    assert_eq!(misfit(Pair(true, 4)), "Pair.1 is 4, which does not fit into 3 bits");
    assert_eq!(misfit(Pair(true, -5)), "Pair.1 is -5, which does not fit into 3 bits");
    assert_eq!(misfit(Message::Ack(16)), "Message::Ack.0 is 16, which does not fit into 4 bits");
    assert_eq!(
        misfit(vec![Message::Data { number: u32::MAX, last: true }]),
        "Message::Data.number is 4294967295, which does not fit into 4 bits"
    );
    let levels = Process { r#type: Message::Hello, levels: [0, 4], maybe: None, inner: () };
    assert_eq!(misfit(levels), "Process.levels is 4, which does not fit into 2 bits");
}

#[test]
fn fields_are_shown_by_name() {
    let text = |text: &str| Value::Text(text.into());
    let process = Process { r#type: Message::Ack(2), levels: [1, 2], maybe: None, inner: -7i32 };
    let expected =
        [("type", text("Ack(2)")), ("levels", text("[1, 2]")), ("maybe", text("None")), ("inner", Value::Int(-7))];
    assert_eq!(process.fields(), expected.map(|(name, value)| (name.to_string(), value)));
    assert_eq!(Pair(true, 1).fields(), [("0".into(), text("true")), ("1".into(), Value::Int(1))]);
    assert_eq!(Message::Hello.fields(), [("state".into(), text("Hello"))]);
}

fn same<T: Pack + PartialEq>(value: T) {
    assert_eq!(unpack::<T>(&pack(&value).expect("it fits")), value);
}

fn messages() -> impl Strategy<Value = Message> {
    prop_oneof![
        Just(Message::Hello),
        (0..16u32, any::<bool>()).prop_map(|(number, last)| Message::Data { number, last }),
        (0..16u8).prop_map(Message::Ack),
    ]
}

fn trees() -> impl Strategy<Value = Tree> {
    Just(Tree::Leaf).prop_recursive(5, 40, 2, |tree| {
        (tree.clone(), any::<u8>(), tree).prop_map(|(left, value, right)| Tree::Node(left.into(), value, right.into()))
    })
}

proptest! {
    #[test]
    fn integers_come_back(a: u8, b: u16, c: u32, d: u64, e: i8, f: i16, g: i32, h: i64) {
        same((a, b, c, d, e, f, g, h));
        same((true, h, Some((g, f)), [e; 3], d));
    }

    #[test]
    fn collections_come_back_and_different_ones_differ(
        sent in prop::collection::vec(0..8u8, 0..80),
        waiting in prop::collection::vec_deque(messages(), 0..10),
        names in prop::collection::btree_map(any::<u8>(), ".{0,9}", 0..5),
        marks in prop::collection::btree_set(any::<char>(), 0..5),
        tree in trees(),
        other in trees(),
    ) {
        same(Channel { sent, waiting, names, marks });
        prop_assert_eq!(pack(&tree) == pack(&other), tree == other);
        same(tree);
    }
}

/// Writing and reading bits of any widths.
fn widths() -> impl Strategy<Value = Vec<(u64, u32)>> {
    prop::collection::vec((any::<u64>(), 0..=64u32), 0..50)
        .prop_map(|list| list.into_iter().map(|(value, bits)| (value & mask(bits), bits)).collect())
}

fn mask(bits: u32) -> u64 {
    if bits == 64 { u64::MAX } else { (1 << bits) - 1 }
}

proptest! {
    #[test]
    fn bits_come_back(list in widths()) {
        let mut packer = Packer::of::<()>();
        list.iter().for_each(|&(value, bits)| packer.write(value, bits));
        let slots = packer.finish().expect("nothing was a misfit").to_vec();
        prop_assert_eq!(slots.len() as u32, list.iter().map(|&(_, bits)| bits).sum::<u32>().div_ceil(32));
        let mut unpacker = Unpacker::of::<()>(&slots);
        for (value, bits) in list {
            prop_assert_eq!(unpacker.read(bits), value);
        }
    }
}
