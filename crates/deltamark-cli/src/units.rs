//! Sizes, durations and large numbers: as users write them, and as reports show them.
//!
//! In: text or figures. Out: figures or text. What stays true: what a report shows can be typed back as an
//! option, apart from rounding.

use std::time::Duration;

/// Parses a size: `4GiB`, `512MB`, `2G`, `1.5GiB`, or a number of bytes. `K`, `M`, `G` and `T` alone are
/// powers of 1024, as in other tools.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size; write for instance 4GiB, 512MB or 2G");
    let (number, unit) = split(text);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1000u64.pow(2),
        "gb" => 1000u64.pow(3),
        "tb" => 1000u64.pow(4),
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    let bytes = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor).ok_or_else(|| format!("`{text}` is more than any machine has"))?,
        Err(_) => {
            let product = decimal(number).ok_or_else(wrong)? * factor as f64;
            if product >= u64::MAX as f64 {
                return Err(format!("`{text}` is more than any machine has"));
            }
            product as u64
        }
    };
    if bytes == 0 { Err("a limit of 0 bytes leaves nothing to work with".into()) } else { Ok(bytes) }
}

/// Reads a duration: `90s`, `10m`, `1h30m`, `2d`, `500ms`, or a number of seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write for instance 90s, 10m or 1h30m");
    let mut seconds = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (number, tail) = split(rest);
        let end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let factor = match unit.to_ascii_lowercase().as_str() {
            "ms" => 0.001,
            "s" | "sec" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            // A bare number is seconds, but only alone: `1h30` could mean either.
            "" if rest.len() == text.trim().len() => 1.0,
            _ => return Err(wrong()),
        };
        seconds += decimal(number).ok_or_else(wrong)? * factor;
        rest = tail.trim_start();
    }
    if seconds == 0.0 {
        return Err("a time limit of 0 leaves nothing to search".into());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is longer than anybody waits"))
}

/// Reads the time from one thing to the next, which may be 0.
pub fn interval(text: &str) -> Result<Duration, String> {
    if matches!(text.trim(), "0" | "0s") { Ok(Duration::ZERO) } else { duration(text) }
}

/// Reads a number of states: digits, perhaps with `_` or `,` between them.
pub fn count(text: &str) -> Result<u64, String> {
    let digits: String = text.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    match digits.parse::<u64>() {
        Ok(0) => Err("a limit of 0 states leaves nothing to search".into()),
        Ok(number) if text.starts_with(|c: char| c.is_ascii_digit()) => Ok(number),
        _ if !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()) && !text.starts_with(['_', ',']) => {
            Err(too_large(text))
        }
        _ => Err(format!("`{text}` is not a number of states; write for instance 1000000 or 1_000_000")),
    }
}

/// Reads a number of steps.
pub fn steps(text: &str) -> Result<u64, String> {
    whole(text, "number of steps")
}

/// Reads a seed.
pub fn seed(text: &str) -> Result<u64, String> {
    whole(text, "seed; write a whole number")
}

fn whole(text: &str, what: &str) -> Result<u64, String> {
    let digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits => Ok(number),
        _ if digits => Err(too_large(text)),
        _ => Err(format!("`{text}` is not a {what}")),
    }
}

fn too_large(text: &str) -> String {
    format!("`{text}` is too large; the largest number is {}", u64::MAX)
}

/// The number at the front and what follows it.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

fn decimal(number: &str) -> Option<f64> {
    number.starts_with(|c: char| c.is_ascii_digit()).then(|| number.parse().ok())?
}

/// A number with thousands separators: `1,234,567`.
pub fn show_count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number in a few characters: `1234`, `12.3k`, `4.56M`.
pub fn show_short(number: u64) -> String {
    let (value, unit) = match number {
        0..10_000 => return number.to_string(),
        10_000..1_000_000 => (number as f64 / 1e3, "k"),
        1_000_000..1_000_000_000 => (number as f64 / 1e6, "M"),
        _ => (number as f64 / 1e9, "G"),
    };
    let decimals = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.decimals$}{unit}")
}

/// A number and its noun: `1 state`, `2 states`.
pub fn show_counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", show_count(number), if number == 1 { "" } else { "s" })
}

/// A size: `12.3 MiB`.
pub fn show_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1023.95 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    let rounded = format!("{value:.1}");
    format!("{} {unit}", rounded.strip_suffix(".0").unwrap_or(&rounded))
}

/// A duration: `0.012 s`, `3.4 s`, `2 min 5 s`, `1 h 2 min`.
pub fn show_duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match time.as_secs() {
        0 => format!("{seconds:.3} s"),
        1..=9 => format!("{seconds:.2} s"),
        10..=59 => format!("{seconds:.1} s"),
        whole @ 60..=3599 => format!("{} min {} s", whole / 60, whole % 60),
        whole => format!("{} h {} min", whole / 3600, whole / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        let good = [
            ("4GiB", 4 << 30),
            ("512MB", 512_000_000),
            ("2G", 2 << 30),
            ("1.5k", 1536),
            ("100", 100),
            ("7 mib", 7 << 20),
            ("3B", 3),
        ];
        for (text, expected) in good {
            assert_eq!(size(text), Ok(expected), "{text}");
        }
        for text in ["", "GiB", "4 gigs", "-1G", "0", "0.0G", "1e9", "99999999999999T", "9999999999.5T", "4GiBs", "."] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_read_as_people_write_them() {
        let good =
            [("90s", 90.0), ("10m", 600.0), ("1h30m", 5400.0), ("2.5", 2.5), ("250ms", 0.25), ("1d 2h", 93600.0)];
        for (text, expected) in good {
            assert_eq!(duration(text), Ok(Duration::from_secs_f64(expected)), "{text}");
        }
        for text in ["", "s", "1x", "1h30", "-5s", "0", "0s", "1e300", "99999999999999999999d", "1..2s", "infs", "nan"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_read_with_separators() {
        assert_eq!(count("1_000_000"), Ok(1_000_000));
        assert_eq!(count("1,000"), Ok(1000));
        for text in ["", "0", "many", "-3", "1.5", "_", "+1"] {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn figures_are_shown_short() {
        assert_eq!([0, 999, 1000, 1234567].map(show_count), ["0", "999", "1,000", "1,234,567"]);
        let short = [9_999, 10_000, 123_456, 1_000_000, 45_600_000, 7_000_000_000].map(show_short);
        assert_eq!(short, ["9999", "10.0k", "123k", "1.00M", "45.6M", "7.00G"]);
        let sizes = [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1 << 20, "1 MiB"), ((1 << 20) - 1, "1 MiB")];
        for (bytes, expected) in sizes.into_iter().chain([(1536, "1.5 KiB"), (u64::MAX, "16777216 TiB")]) {
            assert_eq!(show_bytes(bytes), expected);
        }
        let times =
            [(0.0123, "0.012 s"), (3.456, "3.46 s"), (59.96, "60.0 s"), (125.0, "2 min 5 s"), (3725.0, "1 h 2 min")];
        for (seconds, expected) in times {
            assert_eq!(show_duration(Duration::from_secs_f64(seconds)), expected);
        }
    }
}
