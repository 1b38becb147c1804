//! A plain reader of XML.
//!
//! In: text. Out: its elements in the order of the document, each with its attributes and its own text. What stays
//! true: no entity is expanded but the five that XML itself has and characters by number; a document type is refused;
//! nothing here calls itself, so no text overflows the stack.

/// An element.
#[derive(Debug, Default)]
pub(crate) struct Element {
    /// Its name, with its prefix.
    pub name: String,
    /// Its attributes in order.
    pub attributes: Vec<(String, String)>,
    /// The text directly in it.
    pub text: String,
    /// The numbers of the elements directly in it.
    pub children: Vec<usize>,
    /// The line it begins in.
    pub line: usize,
}

impl Element {
    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The elements of a document; the first is the outermost.
pub(crate) fn read(text: &str) -> Result<Vec<Element>, String> {
    let text = text.trim_start_matches('\u{FEFF}');
    let (mut at, mut lines) = (0, Lines { text, at: 0, line: 1 });
    let mut elements: Vec<Element> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    while at < text.len() {
        let rest = &text[at..];
        let line = lines.of(at);
        let wrong = |what: &str| Err(format!("line {line}: {what}"));
        let until = |start: &str, end: &str| match rest[start.len()..].find(end) {
            Some(length) => Ok(start.len() + length),
            None => Err(format!("line {line}: `{start}` has no `{end}`")),
        };
        if let Some(inner) = rest.strip_prefix("<![CDATA[") {
            let end = until("<![CDATA[", "]]>")?;
            let Some(&last) = open.last() else { return wrong("there is text outside of all elements") };
            elements[last].text.push_str(&inner[..end - 9]);
            at += end + 3;
        } else if rest.starts_with("<!--") {
            at += until("<!--", "-->")? + 3;
        } else if rest.starts_with("<?") {
            at += until("<?", "?>")? + 2;
        } else if rest.starts_with("<!") {
            return wrong("a document type is not read");
        } else if rest.starts_with("</") {
            let end = until("</", ">")?;
            let name = rest[2..end].trim_end();
            match open.pop() {
                Some(last) if elements[last].name == name => {}
                _ => return wrong(&format!("`</{name}>` closes no element")),
            }
            at += end + 1;
        } else if rest.starts_with('<') {
            if open.is_empty() && !elements.is_empty() {
                return wrong("there is a second outermost element");
            }
            let (element, closed, length) = tag(rest).map_err(|what| format!("line {line}: {what}"))?;
            let number = elements.len();
            if let Some(&parent) = open.last() {
                elements[parent].children.push(number);
            }
            elements.push(Element { line, ..element });
            if !closed {
                open.push(number);
            }
            at += length;
        } else {
            let end = rest.find('<').unwrap_or(rest.len());
            match open.last() {
                Some(&last) => {
                    let words = unescape(&rest[..end]).map_err(|what| format!("line {line}: {what}"))?;
                    elements[last].text.push_str(&words);
                }
                None if rest[..end].trim().is_empty() => {}
                None => return wrong("there is text outside of all elements"),
            }
            at += end;
        }
    }
    match open.last() {
        Some(&last) => Err(format!("line {}: `{}` is never closed", elements[last].line, elements[last].name)),
        None if elements.is_empty() => Err("there is no element".into()),
        None => Ok(elements),
    }
}

/// Counts lines as the text is read on.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl Lines<'_> {
    fn of(&mut self, at: usize) -> usize {
        self.line += self.text.as_bytes()[self.at..at].iter().filter(|&&byte| byte == b'\n').count();
        self.at = at;
        self.line
    }
}

/// A tag at the start of a text, whether it closes itself, and its length.
fn tag(text: &str) -> Result<(Element, bool, usize), String> {
    let is_name = |c: char| !c.is_whitespace() && !matches!(c, '=' | '>' | '/' | '<' | '"' | '\'');
    let word = |at: usize| at + text[at..].find(|c| !is_name(c)).unwrap_or(text.len() - at);
    let blank = |at: usize| at + text[at..].find(|c: char| !c.is_whitespace()).unwrap_or(text.len() - at);
    let mut at = word(1);
    let mut element = Element { name: text[1..at].into(), ..Element::default() };
    if element.name.is_empty() {
        return Err("an element has no name".into());
    }
    loop {
        at = blank(at);
        if text[at..].starts_with('>') {
            return Ok((element, false, at + 1));
        }
        if text[at..].starts_with("/>") {
            return Ok((element, true, at + 2));
        }
        let end = word(at);
        let name = &text[at..end];
        at = blank(end);
        let quote = text[at..].strip_prefix('=').map(|rest| rest.trim_start()).and_then(|rest| rest.chars().next());
        let Some(quote @ ('"' | '\'')) = quote.filter(|_| !name.is_empty()) else {
            return Err(format!("the tag of `{}` is not written as XML", element.name));
        };
        let start = blank(at + 1) + 1;
        let Some(length) = text[start..].find(quote) else {
            return Err(format!("the attribute `{name}` has no end"));
        };
        if element.attribute(name).is_some() {
            return Err(format!("`{}` has the attribute `{name}` twice", element.name));
        }
        element.attributes.push((name.into(), unescape(&text[start..start + length])?));
        at = start + length + 1;
    }
}

/// The text with the entities of XML replaced.
fn unescape(text: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        plain.push_str(&rest[..start]);
        let end = rest[start..].find(';').map(|length| start + length).ok_or("`&` begins no entity")?;
        let name = &rest[start + 1..end];
        let number = name.strip_prefix('#').map(|digits| match digits.strip_prefix('x') {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => digits.parse(),
        });
        plain.push(match (name, number) {
            ("lt", _) => '<',
            ("gt", _) => '>',
            ("amp", _) => '&',
            ("quot", _) => '"',
            ("apos", _) => '\'',
            (_, Some(Ok(code))) => char::from_u32(code).ok_or_else(|| format!("`&{name};` is no character"))?,
            _ => return Err(format!("the entity `&{name};` is not known")),
        });
        rest = &rest[end + 1..];
    }
    plain.push_str(rest);
    Ok(plain)
}
