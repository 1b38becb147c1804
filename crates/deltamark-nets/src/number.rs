//! Token counts and weights in files.
//!
//! In: digits. Out: the number, or a message and advice that every format shares. What stays true: a number that
//! does not fit is refused, never truncated.

/// A token count or weight; otherwise a message and advice.
pub(crate) fn number(digits: &str, what: &str, least: u32) -> Result<u32, (String, String)> {
    let range = format!("a {what} is a whole number from {least} to {}", u32::MAX);
    let plain = digits.strip_prefix('+').unwrap_or(digits);
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let wrong = if digits.strip_prefix('-').is_some_and(is_number) {
        format!("the {what} `{digits}` is negative")
    } else if !is_number(plain) {
        format!("`{digits}` is not a whole number")
    } else {
        match plain.parse::<u32>() {
            Ok(number) if number >= least => return Ok(number),
            Ok(_) => format!("the {what} `{digits}` is too small"),
            Err(_) => format!("the {what} `{digits}` is too large"),
        }
    };
    Err((wrong, range))
}
