//! Memory against time, as a picture.
//!
//! In: for each store its points, each a net: time and bytes relative to those of `plain`. Out: a self-contained
//! SVG, readable on light and on dark backgrounds. What stays true: the same points yield the same text; every
//! mark is within the axes; a point that cannot be drawn on a logarithmic axis (zero, infinite, unknown) is
//! omitted.
//!
//! ```text
//!  bytes │· · ● ·┃· · · ·      ● plain
//!        │━━━━━━━╋━━━━━━━  1×  ▲ delta       small: a net
//!        │· · · ·┃· ▲ ◆ ·      ◆ comback     large: geometric mean
//!        └───────┸───────
//!                1×    time
//! ```

use std::fmt::Write;

/// A store's points.
#[derive(Clone, Debug)]
pub struct Series {
    /// The store.
    pub name: String,
    /// One for each net it was measured on.
    pub points: Vec<Point>,
}

/// A store on a net.
#[derive(Clone, Debug)]
pub struct Point {
    /// The net.
    pub net: String,
    /// Its time, as a multiple of `plain`'s.
    pub time: f64,
    /// Its bytes, as a multiple of `plain`'s.
    pub bytes: f64,
    /// Its bytes a state, if they are known.
    pub per_state: Option<f64>,
}

impl Point {
    fn can_be_drawn(&self) -> bool {
        [self.time, self.bytes].iter().all(|value| value.is_finite() && *value > 0.0)
    }
}

impl Series {
    /// The geometric means of time and bytes, and the number of nets.
    pub fn mean(&self) -> Option<(f64, f64, usize)> {
        let points: Vec<&Point> = self.points.iter().filter(|point| point.can_be_drawn()).collect();
        let mean = |of: fn(&Point) -> f64| {
            (points.iter().map(|point| of(point).ln()).sum::<f64>() / points.len() as f64).exp()
        };
        (!points.is_empty()).then(|| (mean(|point| point.time), mean(|point| point.bytes), points.len()))
    }
}

/// The position of the axes.
const LEFT: f64 = 76.0;
const RIGHT: f64 = 640.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 500.0;
/// The legend's left edge, its first line and the height of an entry.
const LEGEND: f64 = 672.0;
const LEGEND_TOP: f64 = 78.0;
const LEGEND_STEP: f64 = 40.0;
const WIDTH: f64 = 940.0;
const HEIGHT: f64 = 560.0;
/// Radius of a mark, and of that of a mean.
const SMALL: f64 = 4.5;
const LARGE: f64 = 8.5;

/// Colours of the stores on light and on dark backgrounds; then they repeat, with other shapes.
const COLOURS: &[(&str, &str)] = &[
    ("#3b3f46", "#d5d9df"),
    ("#0067a8", "#5cb3f2"),
    ("#c04a00", "#ff9352"),
    ("#00795a", "#35c99b"),
    ("#a8337c", "#f089c6"),
    ("#8a6500", "#e5b83a"),
    ("#5a3fc0", "#a996ff"),
    ("#b3202c", "#ff7a80"),
    ("#00727a", "#40c8d2"),
    ("#4d6b00", "#a3cc45"),
    ("#7a4a2b", "#d3a27f"),
];

/// Shapes of radius one, around the origin.
const SHAPES: &[&[(f64, f64)]] = &[
    // An octagon serves as a circle.
    &[(1., 0.41), (0.41, 1.), (-0.41, 1.), (-1., 0.41), (-1., -0.41), (-0.41, -1.), (0.41, -1.), (1., -0.41)],
    &[(0.9, 0.9), (-0.9, 0.9), (-0.9, -0.9), (0.9, -0.9)],
    &[(0., -1.2), (1.1, 0.8), (-1.1, 0.8)],
    &[(0., -1.3), (1.3, 0.), (0., 1.3), (-1.3, 0.)],
    &[(0., 1.2), (1.1, -0.8), (-1.1, -0.8)],
    &[
        (0.4, -1.2),
        (0.4, -0.4),
        (1.2, -0.4),
        (1.2, 0.4),
        (0.4, 0.4),
        (0.4, 1.2),
        (-0.4, 1.2),
        (-0.4, 0.4),
        (-1.2, 0.4),
        (-1.2, -0.4),
        (-0.4, -0.4),
        (-0.4, -1.2),
    ],
    &[(1.3, 0.), (0.65, 1.1), (-0.65, 1.1), (-1.3, 0.), (-0.65, -1.1), (0.65, -1.1)],
    &[
        (0.57, -1.13),
        (1.13, -0.57),
        (0.57, 0.),
        (1.13, 0.57),
        (0.57, 1.13),
        (0., 0.57),
        (-0.57, 1.13),
        (-1.13, 0.57),
        (-0.57, 0.),
        (-1.13, -0.57),
        (-0.57, -1.13),
        (0., -0.57),
    ],
];

/// A logarithmic axis between two positions of the picture.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis that contains all these values, ½ and 2, with some margin.
    fn new(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let (low, high) = values.fold((0.5, 2.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
        Axis { low: low / 1.3, high: high * 1.3, from, to }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        self.from + share * (self.to - self.from)
    }

    /// The positions of lines and labels: powers of ten, with twice and five times them if labels fit, and fewer
    /// of them if they do not.
    fn ticks(&self) -> Vec<(f64, String)> {
        let mut ticks = self.ticks_by(&[1.0, 2.0, 5.0], 1);
        let mut step = 1;
        while !self.have_room(&ticks) {
            ticks = self.ticks_by(&[1.0], step);
            step *= 2;
        }
        ticks
    }

    /// Each `step`-th power of ten, times these factors.
    fn ticks_by(&self, factors: &[f64], step: i32) -> Vec<(f64, String)> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let exponents = (first..=last).filter(|exponent| exponent % step == 0);
        let all = exponents.flat_map(|exponent| factors.iter().map(move |factor| (factor, exponent)));
        let ticks = all.map(|(factor, exponent)| {
            let value = factor * 10f64.powi(exponent);
            (value, format!("{value:.*}×", usize::try_from(-exponent).unwrap_or(0)))
        });
        ticks.filter(|(value, _)| (self.low..=self.high).contains(value)).collect()
    }

    /// Whether labels do not overlap: side by side at eight pixels a character, or one above the other.
    fn have_room(&self, ticks: &[(f64, String)]) -> bool {
        ticks.windows(2).all(|pair| {
            let upwards = self.place(pair[0].0) - self.place(pair[1].0);
            let aside = 4.0 * (pair[0].1.chars().count() + pair[1].1.chars().count()) as f64;
            upwards > 20.0 || -upwards > aside
        })
    }
}

/// The captions of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Scatter<'a> {
    /// Its title.
    pub title: &'a str,
    /// What its marks are.
    pub below: &'a str,
}

impl Scatter<'_> {
    /// Draws it.
    pub fn draw(&self, series: &[Series]) -> String {
        draw(self, series)
    }
}

fn draw(scatter: &Scatter<'_>, series: &[Series]) -> String {
    let drawn = || series.iter().flat_map(|series| series.points.iter().filter(|point| point.can_be_drawn()));
    let across = Axis::new(drawn().map(|point| point.time), LEFT, RIGHT);
    let up = Axis::new(drawn().map(|point| point.bytes), BOTTOM, TOP);
    let height = HEIGHT.max(LEGEND_TOP + LEGEND_STEP * (series.len() + 1) as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-labelledby=\"title\">\n<title id=\"title\">{}</title>\n{}<rect class=\"ground\" width=\"{WIDTH}\" \
         height=\"{height}\"/>\n",
        escaped(scatter.title),
        style(series.len())
    );
    frame(&mut svg, scatter, &across, &up);
    for (index, series) in series.iter().enumerate() {
        for point in series.points.iter().filter(|point| point.can_be_drawn()) {
            let Point { net, time, bytes, per_state } = point;
            let each = per_state.map_or(String::new(), |bytes| format!(", {bytes:.2} bytes a state"));
            let label = format!("{} on {net}: {} × time, {} × memory{each}", series.name, short(*time), short(*bytes));
            mark(&mut svg, "net", index, (across.place(*time), up.place(*bytes)), SMALL, &label);
        }
    }
    for (index, series) in series.iter().enumerate() {
        let top = LEGEND_TOP + LEGEND_STEP * index as f64;
        let mean = series.mean();
        let means = mean.map_or("not measured".into(), |(time, bytes, nets)| {
            format!(
                "{} × time, {} × memory, {nets} {}",
                short(time),
                short(bytes),
                if nets == 1 { "net" } else { "nets" }
            )
        });
        if let Some((time, bytes, _)) = mean {
            let label = format!("{}, geometric mean: {means}", series.name);
            mark(&mut svg, "mean", index, (across.place(time), up.place(bytes)), LARGE, &label);
        }
        mark(&mut svg, "key", index, (LEGEND, top - 4.0), 6.0, &series.name);
        text(&mut svg, "name", (LEGEND + 16.0, top), &series.name);
        text(&mut svg, "small", (LEGEND + 16.0, top + 15.0), &means);
    }
    svg.push_str("</svg>\n");
    svg
}

/// A number of three digits or so.
fn short(value: f64) -> String {
    match value {
        value if value >= 9.95 => format!("{value:.0}"),
        value if value >= 0.995 => format!("{value:.1}"),
        value if value >= 0.0995 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

fn style(stores: usize) -> String {
    let rules = |pick: fn(&(&'static str, &'static str)) -> &'static str| -> String {
        (0..stores).map(|index| format!(".s{index}{{fill:{}}}", pick(&COLOURS[index % COLOURS.len()]))).collect()
    };
    format!(
        "<style>\ntext{{font-family:system-ui,sans-serif;font-size:13px;fill:#24292f}}\n.head{{font-size:15px;\
         font-weight:600}}.name{{font-weight:600}}.small{{font-size:11px}}.right{{text-anchor:end}}\
         .middle{{text-anchor:middle}}\n.ground{{fill:#ffffff}}.grid{{stroke:#dfe3e8}}.one{{stroke:#8c959f;\
         stroke-width:1.5}}.mark{{stroke:#ffffff}}.net{{fill-opacity:.6;stroke-width:.7}}.mean{{stroke-width:2}}\n{}\n\
         @media (prefers-color-scheme:dark){{text{{fill:#e6edf3}}.ground{{fill:#0d1117}}.grid{{stroke:#2b323b}}\
         .one{{stroke:#7d8590}}.mark{{stroke:#0d1117}}.net{{fill-opacity:.75}}{}}}\n</style>\n",
        rules(|colours| colours.0),
        rules(|colours| colours.1)
    )
}

/// Axes, grid, ticks and their labels.
fn frame(svg: &mut String, scatter: &Scatter<'_>, across: &Axis, up: &Axis) {
    let class = |value: f64| if value == 1.0 { "one" } else { "grid" };
    for (value, label) in across.ticks() {
        let x = across.place(value);
        line(svg, class(value), (x, TOP), (x, BOTTOM));
        text(svg, "middle", (x, BOTTOM + 18.0), &label);
    }
    for (value, label) in up.ticks() {
        let y = up.place(value);
        line(svg, class(value), (LEFT, y), (RIGHT, y));
        text(svg, "right", (LEFT - 8.0, y + 4.0), &label);
    }
    text(svg, "head", (LEFT, 26.0), scatter.title);
    text(svg, "small", (LEFT, 46.0), &format!("↑ memory. {}", scatter.below));
    text(svg, "small right", (RIGHT, BOTTOM + 38.0), "processor time →");
}

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(svg, "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>");
}

fn text(svg: &mut String, class: &str, (x, y): (f64, f64), text: &str) {
    let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(text));
}

/// The mark of the store of this number; `kind` is its class.
fn mark(svg: &mut String, kind: &str, store: usize, (x, y): (f64, f64), radius: f64, label: &str) {
    let corners = SHAPES[store % SHAPES.len()].iter().map(|(dx, dy)| format!("{:.1},{:.1}", dx * radius, dy * radius));
    let corners: Vec<String> = corners.collect();
    let _ = writeln!(
        svg,
        "<polygon class=\"mark {kind} s{store}\" transform=\"translate({x:.1},{y:.1})\" points=\"{}\"><title>{}</title>\
         </polygon>",
        corners.join(" "),
        escaped(label)
    );
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(series: &[Series]) -> String {
        Scatter { title: "a < b", below: "c & d" }.draw(series)
    }

    fn series(name: &str, points: &[(f64, f64)]) -> Series {
        let point = |&(time, bytes)| Point { net: "a<b".into(), time, bytes, per_state: Some(3.0) };
        Series { name: name.into(), points: points.iter().map(point).collect() }
    }

    /// The marks of this kind: the class of their store, and their positions.
    fn marks(svg: &str, kind: &str) -> Vec<(String, f64, f64)> {
        let document = roxmltree::Document::parse(svg).expect("well-formed");
        let polygons = document.descendants().filter(|node| node.has_tag_name("polygon"));
        let found = polygons.filter_map(|node| {
            let mut classes = node.attribute("class")?.split(' ').skip(1);
            let (of, store) = (classes.next()?, classes.next()?);
            let place = node.attribute("transform")?.strip_prefix("translate(")?.strip_suffix(')')?;
            let (x, y) = place.split_once(',')?;
            (of == kind).then(|| (store.into(), x.parse().expect("a number"), y.parse().expect("a number")))
        });
        found.collect()
    }

    #[test]
    fn every_store_has_its_marks_its_mean_and_its_key() {
        let svg = draw(&[series("plain", &[(1., 1.)]), series("delta", &[(2., 0.5), (8., 0.125)]), series("x", &[])]);
        let count = |kind, store: &str| marks(&svg, kind).iter().filter(|mark| mark.0 == store).count();
        let counted = |kind| ["s0", "s1", "s2"].map(|store| count(kind, store));
        assert_eq!((counted("net"), counted("mean"), counted("key")), ([1, 2, 0], [1, 1, 0], [1, 1, 1]));
        // The mean of delta is at four times the time and a quarter of the bytes: half-way between its nets.
        let (nets, mean) = (marks(&svg, "net"), marks(&svg, "mean"));
        assert!((mean[1].1 - (nets[1].1 + nets[2].1) / 2.0).abs() < 0.11, "{nets:?} {mean:?}");
        assert!((mean[1].2 - (nets[1].2 + nets[2].2) / 2.0).abs() < 0.11, "{nets:?} {mean:?}");
    }

    #[test]
    fn marks_lie_within_the_axes_and_more_time_is_to_the_right() {
        for points in [&[(1.0, 1.0)][..], &[(1e-6, 1e7), (1e9, 1e-9)], &[(0.9, 1.1), (1.1, 0.9)], &[]] {
            let svg = draw(&[series("a", points)]);
            let found = marks(&svg, "net");
            assert_eq!(found.len(), points.len());
            for (_, x, y) in &found {
                assert!((LEFT..=RIGHT).contains(x) && (TOP..=BOTTOM).contains(y), "{points:?}: {x}, {y}");
            }
            if let [first, second] = &found[..] {
                assert!(first.1 < second.1 && first.2 < second.2, "{points:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let svg = draw(&[series("a", &[(f64::NAN, 1.), (1., f64::INFINITY), (0., 1.), (1., -1.), (3., 0.3)])]);
        assert_eq!(marks(&svg, "net").len(), 1);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn labels_of_an_axis_do_not_touch() {
        for span in [1.0, 1e2, 1e4, 1e6, 1e12, 1e100] {
            let axis = Axis::new([1.0 / span, span].into_iter(), LEFT, RIGHT);
            let ticks = axis.ticks();
            assert!(ticks.iter().any(|(value, label)| *value == 1.0 && label == "1×"));
            assert!(axis.have_room(&ticks), "{span}: {ticks:?}");
        }
        let axis = Axis::new([1e-3, 8.0].into_iter(), BOTTOM, TOP);
        assert!(axis.ticks().len() > 10 && axis.have_room(&axis.ticks()));
        let axis = Axis::new([0.02, 8.0].into_iter(), LEFT, RIGHT);
        let labels: Vec<String> = axis.ticks().into_iter().map(|tick| tick.1).collect();
        assert_eq!(labels, ["0.02×", "0.05×", "0.1×", "0.2×", "0.5×", "1×", "2×", "5×", "10×"]);
    }

    #[test]
    fn texts_do_not_run_out_of_the_picture() {
        let svg = draw(&[series("compaction:bits=40", &[(123.4, 0.0123); 12])]);
        let document = roxmltree::Document::parse(&svg).expect("well-formed");
        let texts = document.descendants().filter(|node| node.has_tag_name("text"));
        for text in texts.filter(|text| matches!(text.attribute("class"), Some("name" | "small"))) {
            let left: f64 = text.attribute("x").and_then(|x| x.parse().ok()).expect("a number");
            let (words, wide) =
                (text.text().expect("words"), if text.attribute("class") == Some("name") { 9.0 } else { 7.0 });
            assert!(left + wide * words.chars().count() as f64 <= WIDTH, "{words}");
        }
    }

    #[test]
    fn the_same_points_give_the_same_picture() {
        let all: Vec<Series> = (0..30).map(|index| series("s&t", &[(1.0 + f64::from(index), 0.5)])).collect();
        assert_eq!(draw(&all), draw(&all));
        assert_eq!(marks(&draw(&all), "key").len(), 30);
    }
}
