//! A shared library as a system.
//!
//! In: a library. Out: a [`System`] that calls it. What stays true:
//!
//! - I1: the library stays loaded as long as the system lives, so that its functions and what its
//!   description points to stay valid.
//! - I2: the description was checked when the library was loaded and is not read again: what is
//!   needed of it is in [`LibrarySystem`].
//! - I3: an [`Out`] that the library is given is the first field of a [`Receiver`], which lives
//!   until the call returns; so a pointer to the one is a pointer to the other.

use crate::interface::{
    Description, ENTRY, Entry, MOST_VARIABLES, ONE_THREAD, Out, Parameter, VARIES, VERSION, WIDEST,
};
use deltamark_core::hash::{self, mix};
use deltamark_core::portable::{read_slots, write_slots};
use deltamark_core::varint::Reader;
use deltamark_core::{
    Action, Batch, Describe, Diagnostic, Fired, Misread, Observable, ObservableKind, Observe, Portable, Scratch, Slot,
    System, Value, Widen, Width,
};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Initial = unsafe extern "C" fn(*mut c_void, *mut Out);
type Successors = unsafe extern "C" fn(*mut c_void, *const u32, usize, *mut Out);
type Show = unsafe extern "C" fn(*mut c_void, *const u32, usize, *mut c_char, usize) -> usize;
type ValueOf = unsafe extern "C" fn(*mut c_void, *const u32, usize, u32) -> i64;

/// A state's text is truncated to this many bytes.
const LONGEST_TEXT: usize = 1 << 20;

/// A model in a shared library.
pub struct LibrarySystem {
    width: Width,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    own: *mut c_void,
    initial: Initial,
    successors: Successors,
    show: Option<Show>,
    value: Option<ValueOf>,
    /// For a library that must not be called by two threads at once.
    turn: Option<Mutex<()>>,
    /// Last, because it is dropped last (I1).
    _library: libloading::Library,
}

// SAFETY: the header demands that the functions may be called from any thread, and that what `own`
// points to does not change; a library that wants one thread at a time is called under `turn`.
unsafe impl Send for LibrarySystem {}
// SAFETY: as above.
unsafe impl Sync for LibrarySystem {}

impl LibrarySystem {
    pub(crate) fn open(path: &Path, parameters: &[(String, String)]) -> Result<Self, Diagnostic> {
        let shown = path.display();
        // Without this a bare name would be searched among the system's libraries.
        let full = path.canonicalize().map_err(|error| Diagnostic::new(format!("cannot read `{shown}`: {error}")))?;
        // SAFETY: loading runs the library's own start-up code. That it is sound is what the user who
        // asks for a library vouches for; `load` is called on that request alone.
        let library = unsafe { libloading::Library::new(&full) }.map_err(|error| {
            Diagnostic::new(format!("`{shown}` cannot be loaded as a shared library: {error}"))
                .help("build it with `cc -shared -fPIC`, for this kind of machine")
        })?;
        // SAFETY: the header gives this symbol this type.
        let entry = unsafe { library.get::<Entry>(ENTRY.as_bytes()) }.map_err(|_| {
            Diagnostic::new(format!("`{shown}` does not export `{ENTRY}`"))
                .help("include `deltamark.h` and define that function; in C++ the header makes it `extern \"C\"`")
        })?;
        let words: Vec<(CString, CString)> = parameters
            .iter()
            .map(|(name, value)| Ok((CString::new(name.as_str())?, CString::new(value.as_str())?)))
            .collect::<Result<_, std::ffi::NulError>>()
            .map_err(|_| Diagnostic::new("a parameter holds a character of number zero"))?;
        let list: Vec<Parameter> =
            words.iter().map(|(name, value)| Parameter { name: name.as_ptr(), value: value.as_ptr() }).collect();
        let mut error: *const c_char = std::ptr::null();
        // SAFETY: the pointers are valid during the call, as the header promises.
        let description = unsafe { entry(list.as_ptr(), list.len(), &mut error) };
        if description.is_null() {
            // SAFETY: the header demands that `error` is a C string or stays null.
            let reason = unsafe { text(error) }.unwrap_or_else(|| "it does not say why".into());
            return Err(Diagnostic::new(format!("`{shown}` gives no model: {reason}")));
        }
        // SAFETY: every version of a description begins with its version, a `uint32_t`.
        let version = unsafe { description.cast::<u32>().read() };
        if version != VERSION {
            return Err(Diagnostic::new(format!(
                "`{shown}` was built for version {version} of the interface, and this is version {VERSION}"
            ))
            .help("build it again with the `deltamark.h` of this version"));
        }
        // SAFETY: it is of this version, so of this shape, and not null.
        let description = unsafe { &*description };
        let shown = shown.to_string();
        Self::described(&shown, description, library)?.tried(&shown)
    }

    /// The system of a valid description.
    fn described(shown: &str, description: &Description, library: libloading::Library) -> Result<Self, Diagnostic> {
        let wrong = |what: String| Diagnostic::new(format!("the model of `{shown}` {what}"));
        let width = match description.width {
            VARIES => Width::Varies,
            width @ 1..=WIDEST => Width::Fixed(width as usize),
            width => return Err(wrong(format!("says that its states have {width} slots; 1 to {WIDEST} can be"))),
        };
        let missing = |name: &str| wrong(format!("lacks the function `{name}`"));
        let initial = description.initial.ok_or_else(|| missing("initial"))?;
        let successors = description.successors.ok_or_else(|| missing("successors"))?;
        if description.flags & !ONE_THREAD != 0 {
            return Err(wrong(format!("sets flags that do not exist: {:#x}", description.flags)));
        }
        let count = description.variables;
        if count > MOST_VARIABLES {
            return Err(wrong(format!("says that it has {count} variables; at most {MOST_VARIABLES} can be")));
        }
        if count > 0 && description.names.is_null() {
            return Err(wrong("has variables without names".into()));
        }
        if count > 0 && description.value.is_none() {
            return Err(missing("value"));
        }
        let mut names = Vec::new();
        let mut numbers = HashMap::new();
        for number in 0..count {
            // SAFETY: the header demands that there are as many names as variables, each a C string.
            let name = unsafe { text(*description.names.add(number as usize)) };
            let name = name.ok_or_else(|| wrong(format!("has no name for its variable number {number}")))?;
            if numbers.insert(name.clone(), number).is_some() {
                return Err(wrong(format!("has two variables of the name `{name}`")));
            }
            names.push(name);
        }
        Ok(LibrarySystem {
            width,
            names,
            numbers,
            own: description.self_,
            initial,
            successors,
            show: description.show,
            value: description.value,
            turn: (description.flags & ONE_THREAD != 0).then(Mutex::default),
            _library: library,
        })
    }

    /// The system, if the library returns an initial state.
    fn tried(self, shown: &str) -> Result<Self, Diagnostic> {
        let mut batch = Batch::new(self.width);
        let _ = self.initial(&mut Scratch::none(), &mut batch);
        if let Some(fault) = batch.faults().first() {
            return Err(Diagnostic::new(format!("an initial state of `{shown}` is wrong: {}", fault.message)));
        }
        if batch.is_empty() {
            return Err(Diagnostic::new(format!("`{shown}` gives no initial state")));
        }
        Ok(self)
    }

    /// Waits for its turn, if only one thread may call.
    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        self.turn.as_ref().map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn ask_initial(&self, receiver: &mut Receiver<'_>) {
        let _turn = self.turn();
        // SAFETY: I1; the receiver lives until the call returns (I3).
        unsafe { (self.initial)(self.own, receiver.out()) }
    }

    fn ask(&self, source: &[Slot], receiver: &mut Receiver<'_>) {
        let _turn = self.turn();
        // SAFETY: I1; the slice is valid for its length and the receiver until the call returns (I3).
        unsafe { (self.successors)(self.own, source.as_ptr(), source.len(), receiver.out()) }
    }

    /// The library's text of a state.
    fn text(&self, show: Show, state: &[Slot]) -> String {
        let _turn = self.turn();
        let mut buffer = vec![0u8; 256];
        loop {
            // SAFETY: I1; the header allows the library to write `buffer.len()` bytes.
            let length =
                unsafe { show(self.own, state.as_ptr(), state.len(), buffer.as_mut_ptr().cast(), buffer.len()) };
            if length < buffer.len() || buffer.len() >= LONGEST_TEXT {
                buffer.truncate(length.min(buffer.len() - 1));
                return String::from_utf8_lossy(&buffer).into_owned();
            }
            buffer.resize((length + 1).min(LONGEST_TEXT), 0);
        }
    }
}

/// The purpose of enumerating a library's steps.
enum Wanted<'a> {
    /// All steps.
    All(&'a mut Batch),
    /// The step of this number.
    One(u32, &'a mut Vec<Slot>, &'a mut Fired),
    /// The label of the step of this number.
    Label(u32, &'a mut Option<String>),
}

/// Receives the library's steps. `out` comes first (I3).
#[repr(C)]
struct Receiver<'a> {
    out: Out,
    width: Width,
    /// The number of steps and faults so far, which is the number of the next one.
    count: u32,
    wanted: Wanted<'a>,
}

impl<'a> Receiver<'a> {
    fn new(width: Width, wanted: Wanted<'a>) -> Self {
        Receiver { out: Out { step: take_step, fault: take_fault }, width, count: 0, wanted }
    }

    fn out(&mut self) -> *mut Out {
        (&raw mut *self).cast()
    }

    fn step(&mut self, state: &[Slot], label: *const c_char) {
        if let Width::Fixed(width) = self.width
            && state.len() != width
        {
            return self.fault(format!("the library gave a state of {} slots, where all have {width}", state.len()));
        }
        let action = self.next();
        match &mut self.wanted {
            Wanted::All(batch) => batch.push(action, state),
            Wanted::One(number, target, fired) if *number == action.0 => {
                target.clear();
                target.extend_from_slice(state);
                **fired = Fired::Done;
            }
            // SAFETY: the header demands a C string or null.
            Wanted::Label(number, found) if *number == action.0 => **found = unsafe { text(label) },
            _ => {}
        }
    }

    fn fault(&mut self, message: String) {
        let action = self.next();
        match &mut self.wanted {
            Wanted::All(batch) => batch.fault(Some(action), message),
            Wanted::One(number, _, fired) if *number == action.0 => **fired = Fired::Fault(message),
            Wanted::Label(number, found) if *number == action.0 => **found = Some(message),
            _ => {}
        }
    }

    fn next(&mut self) -> Action {
        self.count += 1;
        Action(self.count - 1)
    }
}

extern "C" fn take_step(out: *mut Out, state: *const u32, width: usize, label: *const c_char) {
    // SAFETY: I3: the library hands back the pointer that it was given.
    let receiver = unsafe { &mut *out.cast::<Receiver<'_>>() };
    if width > WIDEST as usize {
        return receiver.fault(format!("the library gave a state of {width} slots; at most {WIDEST} can be"));
    }
    if state.is_null() && width > 0 {
        return receiver.fault("the library gave a null pointer for a state".into());
    }
    // SAFETY: the header demands that `state` points to `width` slots.
    let state = if width == 0 { &[] } else { unsafe { std::slice::from_raw_parts(state, width) } };
    receiver.step(state, label);
}

extern "C" fn take_fault(out: *mut Out, message: *const c_char) {
    // SAFETY: I3, and the header demands a C string or null.
    let (receiver, message) = unsafe { (&mut *out.cast::<Receiver<'_>>(), text(message)) };
    receiver.fault(message.unwrap_or_else(|| "the model declares this step wrong".into()));
}

/// A C string, or `None` for a null pointer.
///
/// # Safety
/// The pointer is null or leads to bytes that end in a zero.
unsafe fn text(pointer: *const c_char) -> Option<String> {
    // SAFETY: as demanded above.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

impl System for LibrarySystem {
    fn width(&self) -> Width {
        self.width
    }

    fn initial(&self, _: &mut Scratch, out: &mut Batch) -> Result<(), Widen> {
        self.ask_initial(&mut Receiver::new(self.width, Wanted::All(out)));
        Ok(())
    }

    fn successors(&self, _: &mut Scratch, source: &[Slot], out: &mut Batch) -> Result<(), Widen> {
        self.ask(source, &mut Receiver::new(self.width, Wanted::All(out)));
        Ok(())
    }

    fn describe(&self) -> &dyn Describe {
        self
    }

    fn fire(&self, _: &mut Scratch, source: &[Slot], action: Action, target: &mut Vec<Slot>) -> Result<Fired, Widen> {
        let mut fired = Fired::Disabled;
        self.ask(source, &mut Receiver::new(self.width, Wanted::One(action.0, target, &mut fired)));
        Ok(fired)
    }

    fn portable(&self) -> Option<&dyn Portable> {
        Some(self)
    }

    fn observe(&self) -> Option<&dyn Observe> {
        Some(self)
    }
}

/// States as the library made them. It relies on them without looking, so a checksum of 32 bits comes before each: bytes
/// that were damaged are refused, but bytes that somebody forged are not.
impl Portable for LibrarySystem {
    fn write_state(&self, _: &mut Scratch, state: &[Slot], out: &mut Vec<u8>) {
        out.extend(checksum(state).to_le_bytes());
        write_slots(self.width, state, out);
    }

    fn read_state(&self, _: &mut Scratch, bytes: &mut Reader<'_>, out: &mut Vec<Slot>) -> Result<(), Misread> {
        let sum = bytes.take(size_of::<u32>()).ok_or(Misread::SHORT)?;
        read_slots(self.width, WIDEST as usize, bytes, out).ok_or(Misread::SHORT)?;
        if sum == checksum(out).to_le_bytes() {
            Ok(())
        } else {
            Err(Misread::Wrong("the checksum of a state is wrong"))
        }
    }
}

fn checksum(state: &[Slot]) -> u32 {
    mix(hash::slots(state)) as u32
}

impl Describe for LibrarySystem {
    fn state(&self, state: &[Slot]) -> Vec<(String, Value)> {
        let number = |text: &str| text.parse().map_or_else(|_| Value::Text(text.into()), Value::Int);
        let Some(show) = self.show else {
            let length = (self.width == Width::Varies).then(|| ("slots".to_string(), Value::Int(state.len() as i64)));
            let slots =
                state.iter().enumerate().map(|(index, &slot)| (format!("slot {index}"), Value::Int(slot.into())));
            return length.into_iter().chain(slots).collect();
        };
        let text = self.text(show, state);
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let pairs = lines.map(|line| match line.split_once('=') {
            Some((name, value)) => (name.trim().to_string(), number(value.trim())),
            None => ("state".to_string(), Value::Text(line.trim().into())),
        });
        pairs.collect()
    }

    fn rest(&self) -> Value {
        // A variable that the library omits from a text is not zero but absent.
        if self.show.is_some() { Value::Text(String::new()) } else { Value::Int(0) }
    }

    fn action(&self, source: &[Slot], action: Action) -> String {
        let mut label = None;
        self.ask(source, &mut Receiver::new(self.width, Wanted::Label(action.0, &mut label)));
        label.unwrap_or_else(|| format!("step {}", action.0))
    }
}

impl Observe for LibrarySystem {
    fn resolve(&self, name: &str) -> Option<Observable> {
        self.numbers.get(name).map(|&index| Observable { index, kind: ObservableKind::Int })
    }

    fn fireable(&self, _: &str) -> Option<Observable> {
        None
    }

    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn action_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn read(&self, _: &mut Scratch, state: &[Slot], observable: Observable) -> i64 {
        let _turn = self.turn();
        // SAFETY: I1; there are variables only if there is this function (`checked`).
        self.value.map_or(0, |value| unsafe { value(self.own, state.as_ptr(), state.len(), observable.index) })
    }
}
