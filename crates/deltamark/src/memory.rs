//! What this process holds, and what the machine still has.
//!
//! In: the files in which Linux reports them. Out: bytes, or `None` where they are not known
//! (other systems, no `/proc`). What stays true: nothing here fails; a figure that
//! cannot be had is omitted, and a run without it goes by its own accounting.

pub use deltamark_core::budget::{is_optional, run_out};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The bytes of memory this process has resident now.
pub fn resident() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * page_size())
}

/// The most bytes of memory this process has had resident so far.
pub fn peak() -> Option<u64> {
    kibibytes(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// The bytes of memory that can still be taken before the machine swaps or the
/// container is ended: the smallest of what the machine and every enclosing control
/// group have left.
pub fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| kibibytes(&text, "MemAvailable:"));
    let groups = fs::read_to_string("/proc/self/cgroup").ok().map(|text| group_files(&text)).unwrap_or_default();
    groups.iter().filter_map(GroupFiles::left).chain(machine).min()
}

/// The address space of a process, where it is limited (`ulimit -v`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressSpace {
    /// The most bytes that may be mapped.
    pub limit: u64,
    /// The bytes that are mapped.
    pub mapped: u64,
}

impl AddressSpace {
    /// That of this process; `None` if it has no limit.
    pub fn of_this_process() -> Option<Self> {
        let limit = address_limit(&fs::read_to_string("/proc/self/limits").ok()?)?;
        let statm = fs::read_to_string("/proc/self/statm").ok()?;
        let pages: u64 = statm.split_ascii_whitespace().next()?.parse().ok()?;
        Some(AddressSpace { limit, mapped: pages * page_size() })
    }

    /// The bytes that may still be mapped.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.mapped)
    }

    /// What of it a budget may grant. The rest is for stacks, and for addresses that tables take ahead of
    /// what they fill.
    pub fn grantable(&self) -> u64 {
        self.left() / 4 * 3
    }

    /// How many threads may search: stacks and working memory of all but the first are within an eighth of what
    /// is left. A thread whose stack fits but not the one for its signal handler, which comes next, would
    /// take the process down.
    pub fn threads(&self) -> usize {
        1 + usize::try_from(self.left() / 8 / THREAD).unwrap_or(usize::MAX - 1)
    }
}

/// The addresses of a thread: 2 MiB of stack, its working memory.
const THREAD: u64 = 3 << 20;

/// The limit of the address space in the text of `/proc/self/limits`, if it has one.
fn address_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The memory limit of a run that was given none: what is resident now plus nine
/// tenths of what is available.
pub fn default_limit() -> Option<u64> {
    Some(resident()? + available()? / 10 * 9)
}

/// What a run keeps back from its limit for what no budget counts: batches, the
/// allocator's slack, the report. With 2 MiB in place of 5, one breadth-first run under
/// a limit of 60 MiB ended 0.9 MiB above it; with 5, runs under 30, 40 and 60 MiB ended
/// 2 to 3 MiB below.
pub fn reserve(limit: u64) -> u64 {
    RESERVE + limit / 64
}

const RESERVE: u64 = 5 << 20;

/// The smallest limit that leaves `bytes` beside its reserve.
pub fn least_limit(bytes: u64) -> u64 {
    // A limit `l` leaves `l - reserve(l)`, which is `l * 63 / 64` less `RESERVE`, rounded up.
    (bytes + RESERVE).div_ceil(63).saturating_mul(64)
}

fn kibibytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The size of a page, from the auxiliary vector, where the kernel reports it without a
/// call to the C library.
fn page_size() -> u64 {
    const AT_PAGESZ: usize = 6;
    static SIZE: OnceLock<u64> = OnceLock::new();
    *SIZE.get_or_init(|| {
        let words: Vec<usize> = fs::read("/proc/self/auxv")
            .unwrap_or_default()
            .chunks_exact(size_of::<usize>())
            .filter_map(|bytes| bytes.try_into().ok().map(usize::from_ne_bytes))
            .collect();
        let found = words.chunks_exact(2).find(|pair| pair[0] == AT_PAGESZ).map(|pair| pair[1] as u64);
        found.filter(|size| size.is_power_of_two()).unwrap_or(4096)
    })
}

/// Where one control group reports its limit and its use.
#[derive(Debug, PartialEq, Eq)]
struct GroupFiles {
    folder: PathBuf,
    limit: &'static str,
    used: &'static str,
    /// The field of `memory.stat` that counts file pages which can be dropped.
    droppable: &'static str,
}

impl GroupFiles {
    /// What the group has left, unless it has no limit.
    fn left(&self) -> Option<u64> {
        let number = |file| fs::read_to_string(self.folder.join(file)).ok()?.trim().parse::<u64>().ok();
        let limit = number(self.limit)?;
        let stat = fs::read_to_string(self.folder.join("memory.stat")).unwrap_or_default();
        let droppable = stat
            .lines()
            .find_map(|line| line.strip_prefix(self.droppable)?.strip_prefix(' ')?.parse::<u64>().ok())
            .unwrap_or(0);
        Some(limit.saturating_sub(number(self.used)?.saturating_sub(droppable)))
    }
}

/// The control groups that may limit this process, from the text of `/proc/self/cgroup`.
/// Every enclosing group counts, and inside a container the path may be one that only
/// the host knows, so the root of the mount is always among them.
fn group_files(text: &str) -> Vec<GroupFiles> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let (mount, limit, used, droppable) = if number == "0" && controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        } else {
            continue;
        };
        let inside = Path::new(path.trim_start_matches('/'));
        for group in inside.ancestors().filter(|group| !group.components().any(|part| part.as_os_str() == "..")) {
            found.push(GroupFiles { folder: Path::new(mount).join(group), limit, used, droppable });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_figures_are_there_and_plausible() {
        let block = std::hint::black_box(vec![1u8; 32 << 20]);
        let (now, most) = (resident().unwrap(), peak().unwrap());
        assert!(now >= block.len() as u64, "{now}");
        // The kernel sums up its counters now and then only.
        assert!(most + (1 << 20) >= now, "{most} {now}");
        assert!(default_limit().unwrap() > now);
    }

    #[test]
    fn the_limit_of_the_address_space_is_read() {
        let text = |limit: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units\n\
                     Max address space         {limit}            unlimited            bytes\n\
                     Max file locks            unlimited            unlimited            locks\n"
            )
        };
        assert_eq!(address_limit(&text("92160000")), Some(92_160_000));
        assert_eq!(address_limit(&text("unlimited")), None);
        let space = AddressSpace { limit: 100, mapped: 20 };
        assert_eq!((space.left(), space.grantable()), (80, 60));
        assert_eq!(AddressSpace { limit: 100, mapped: 120 }.left(), 0);
        for (mebibytes, threads) in [(0, 1), (23, 1), (24, 2), (100, 5)] {
            assert_eq!(AddressSpace { limit: mebibytes << 20, mapped: 0 }.threads(), threads, "{mebibytes}");
        }
    }

    #[test]
    fn the_least_limit_is_enough_and_hardly_more() {
        for bytes in [0, 1, 63 << 20, 12_345_678_901] {
            let limit = least_limit(bytes);
            let left = limit - reserve(limit);
            assert!((bytes..bytes + 128).contains(&left), "{bytes} {left}");
        }
    }

    #[test]
    fn every_enclosing_group_is_asked() {
        let folders = |text: &str| {
            group_files(text).iter().map(|group| group.folder.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(folders("0::/a/b\n"), ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup/"]);
        assert_eq!(folders("3:cpu:/x\n5:hugetlb,memory:/\n"), ["/sys/fs/cgroup/memory/"]);
        assert_eq!(folders("0::/../..\n"), ["/sys/fs/cgroup/"]);
        assert!(folders("nonsense\n\n").is_empty());
    }

    #[test]
    fn fields_are_found_by_name() {
        let cases = [("VmHWM:\t  12 kB\n", Some(12288)), ("VmHW: 1 kB", None), ("VmHWM: x kB", None), ("", None)];
        for (text, expected) in cases {
            assert_eq!(kibibytes(text, "VmHWM:"), expected, "{text:?}");
        }
    }
}
