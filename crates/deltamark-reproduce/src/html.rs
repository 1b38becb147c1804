//! A study as a self-contained page.
//!
//! In: a study. Out: HTML with its pictures inline. What stays true: no script, no external resources; readable on
//! light and on dark backgrounds.

use crate::plot::escaped;
use crate::study::{Cell, Grid, Row, Study, Unit};
use std::fmt::Write;

const STYLE: &str = "\
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto}
th,td{padding:.25rem .6rem;border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent);text-align:right}
th:first-child,td:first-child{text-align:left}
.paper{opacity:.65}
.better{font-weight:600}
.worse{font-weight:600;color:light-dark(#b3202c,#ff7a80)}
.missing{opacity:.65;font-style:italic}
figure{margin:1.5rem 0}figure svg{max-width:100%;height:auto}
";

impl Study {
    /// The whole study as a page.
    pub fn to_html(&self) -> String {
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width\">\n<title>{0}, measured again</title>\n<style>{STYLE}</style>\n<h1>{0}</h1>\n\
             <p>{1}. Measured there on: {2}. Beside each published figure stands ours, measured by deltamark {3}; less \
             is better.</p>\n",
            escaped(self.title),
            escaped(self.source),
            escaped(self.machine),
            env!("CARGO_PKG_VERSION")
        );
        if !self.complete {
            page.push_str("<p><strong>Not all runs were made.</strong></p>\n");
        }
        for grid in &self.grids {
            table(&mut page, grid);
        }
        for figure in &self.figures {
            let _ = writeln!(
                page,
                "<figure>\n{}<figcaption>{}</figcaption>\n</figure>",
                figure.svg,
                escaped(&figure.caption)
            );
        }
        if !self.notes.is_empty() {
            page.push_str("<h2>Notes</h2>\n<ul>\n");
            for note in &self.notes {
                let _ = writeln!(page, "<li>{}</li>", escaped(note));
            }
            page.push_str("</ul>\n");
        }
        page.push_str("</html>\n");
        page
    }
}

fn table(page: &mut String, grid: &Grid) {
    let unit = match grid.unit.words() {
        "" => String::new(),
        words => format!(" ({words})"),
    };
    let _ = writeln!(
        page,
        "<h2>{}{unit}</h2>\n<div class=\"wide\"><table>\n<thead><tr><th>model</th>",
        escaped(&grid.title)
    );
    page.push_str("<th class=\"paper\">states, paper</th><th>states, ours</th>");
    for column in &grid.columns {
        let _ = write!(page, "<th class=\"paper\">{0}, paper</th><th>{0}, ours</th>", escaped(column));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in &grid.rows {
        let count = |states: Option<u64>| states.map_or(String::new(), |states| Unit::Count.show(states as f64));
        let _ = write!(
            page,
            "<tr><td>{}</td><td class=\"paper\">{}</td><td>{}</td>",
            escaped(&row.label),
            count(row.published_states),
            count(row.states)
        );
        for cell in &row.cells {
            let published = cell.published.map_or(String::new(), |published| published.show(grid.unit));
            let _ = write!(
                page,
                "<td class=\"paper\">{}</td><td class=\"{}\">{}</td>",
                escaped(&published),
                class(row, cell),
                escaped(&cell.ours.show(grid.unit))
            );
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn class(row: &Row, cell: &Cell) -> &'static str {
    match cell.ours.value() {
        None => "missing",
        Some(_) if cell.published.is_none() || !row.same_model => "",
        Some(_) if cell.is_worse() => "worse",
        Some(_) => "better",
    }
}

#[cfg(test)]
mod tests {
    use crate::study::{Figure, Grid, Ours, Published, Row};
    use crate::{Cell, Study, Unit};

    #[test]
    fn a_page_holds_every_figure_and_is_well_formed_but_for_its_first_lines() {
        let cells = vec![
            Cell { published: Some(Published::Value(10.0)), ours: Ours::Value(5.0) },
            Cell { published: Some(Published::Range(1.0, 2.0)), ours: Ours::Missing("> 3 s".into()) },
        ];
        let row = Row { label: "a<b".into(), published_states: Some(7), states: Some(7), same_model: true, cells };
        let grid =
            Grid { title: "T".into(), unit: Unit::Percent, columns: vec!["x".into(), "y".into()], rows: vec![row] };
        let study = Study {
            paper: "p",
            title: "A title",
            source: "s",
            machine: "m",
            grids: vec![grid],
            figures: vec![Figure { name: "f".into(), caption: "c".into(), svg: "<svg/>".into() }],
            notes: vec!["n".into()],
            complete: true,
        };
        let page = study.to_html();
        for part in ["a&lt;b", "10.0", "5.00", "1 to 2", "&gt; 3 s", "<svg/>", "better", "missing"] {
            assert!(page.contains(part), "{part}");
        }
        let tables = &page[page.find("<div").expect("a table")..page.find("</div>").expect("its end") + 6];
        assert!(roxmltree::Document::parse(tables).is_ok(), "{tables}");
        assert!(study.to_text().contains("10.0 | 5.00"));
    }
}
