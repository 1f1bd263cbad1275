//! Pictures: panels on a grid, written as SVG and PNG, with everything that is drawn as CSV.

use std::sync::Arc;

use kuva::backend::raster::RasterBackend;
use kuva::backend::svg::SvgBackend;
pub(crate) use kuva::plot::legend::LegendPosition;
use kuva::plot::{BarPlot, ColorMap, Heatmap, LinePlot, ScatterPlot};
use kuva::render::figure::Figure;
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::plots::Plot;

use crate::Result;

mod ranges;

pub(crate) use ranges::Ranges;

/// Colours that stay apart for colour-blind readers and in grey.
const COLOURS: [&str; 6] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
];

/// Range and label of one axis.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    label: String,
    range: (f64, f64),
    log: bool,
}

impl Axis {
    /// A linear axis.
    pub(crate) fn linear(label: &str, min: f64, max: f64) -> Self {
        Self {
            label: label.into(),
            range: (min, max),
            log: false,
        }
    }

    /// A logarithmic axis over whole decades that contain `min..max`, both positive. The range is kept, and drawn, in
    /// decades: the plotter's own logarithmic axis ends at 1e-10.
    pub(crate) fn log(label: &str, min: f64, max: f64) -> Self {
        let (low, high) = (min.log10().floor(), max.log10().ceil());
        Self {
            label: label.into(),
            range: (low, high.max(low + 1.0)),
            log: true,
        }
    }

    /// An axis without numbers.
    pub(crate) fn bare(label: &str, length: usize) -> Self {
        Self::linear(label, 0.0, length as f64)
    }

    fn place(&self, value: f64) -> f64 {
        if self.log { value.log10() } else { value }
    }

    /// A linear axis from 0 to a little above the largest value.
    pub(crate) fn from_zero(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let max = values.fold(0.0, f64::max);
        Self::linear(label, 0.0, if max > 0.0 { 1.08 * max } else { 1.0 })
    }
}

/// Named points of a line or a cloud.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Legend text; empty for none.
    pub(crate) name: String,
    /// `(x, y)`.
    pub(crate) points: Vec<(f64, f64)>,
    /// Drawn dashed: reference values and limits.
    pub(crate) dashed: bool,
    /// Index into the palette.
    pub(crate) colour: usize,
}

impl Series {
    pub(crate) fn new(name: &str, colour: usize, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            dashed: false,
            colour,
        }
    }

    pub(crate) fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }
}

/// One set of axes with its contents, and the same as a table.
pub(crate) struct Panel {
    plots: Vec<Plot>,
    layout: Layout,
    /// `series, x, y, value`.
    table: Vec<[String; 4]>,
}

fn layout(plots: &[Plot], title: &str, x: &Axis, y: &Axis) -> Layout {
    let mut layout = Layout::auto_from_plots(plots)
        .with_title(title)
        .with_x_label(x.label.as_str())
        .with_y_label(y.label.as_str())
        .with_title_size(18)
        .with_label_size(16)
        .with_tick_size(14)
        .with_body_size(14)
        .with_ticks(5)
        .with_show_grid(false)
        .with_legend_position(LegendPosition::InsideTopRight)
        .with_x_axis_min(x.range.0)
        .with_x_axis_max(x.range.1)
        .with_y_axis_min(y.range.0)
        .with_y_axis_max(y.range.1);
    let decades = || TickFormat::Custom(Arc::new(|v: f64| format!("1e{}", v.round())));
    let step = |a: &Axis| ((a.range.1 - a.range.0) / 6.0).ceil();
    if x.log {
        layout = layout
            .with_x_tick_step(step(x))
            .with_x_tick_format(decades());
    }
    if y.log {
        layout = layout
            .with_y_tick_step(step(y))
            .with_y_tick_format(decades());
    }
    layout
}

impl Panel {
    /// A density in the papers' inverse grey map: 0 white, the largest value black. `rows[0]` is drawn at the bottom.
    pub(crate) fn density(title: &str, rows: &[Vec<f64>], x: &Axis, y: &Axis) -> Self {
        let all = || rows.iter().flatten().copied();
        let (low, high) = (
            all().fold(f64::INFINITY, f64::min),
            all().fold(0.0, f64::max),
        );
        let scale = if high > 0.0 { high } else { 1.0 };
        let grey = move |t: f64| {
            let value = (low + t * (high - low)) / scale;
            let level = (255.0 * (1.0 - value.clamp(0.0, 1.0))).round() as u8;
            format!("#{level:02x}{level:02x}{level:02x}")
        };
        Self::map(title, rows, (x, y), "density", grey)
    }

    /// Values of either sign: 0 white, positive values orange and negative ones blue, as dark as they are large, `high` and beyond at most.
    /// `rows[0]` is drawn at the bottom.
    pub(crate) fn signed(title: &str, rows: &[Vec<f64>], high: f64, x: &Axis, y: &Axis) -> Self {
        let all = || rows.iter().flatten().copied();
        let (low, top) = (
            all().fold(f64::INFINITY, f64::min),
            all().fold(f64::NEG_INFINITY, f64::max),
        );
        let colour = move |t: f64| {
            let share = ((low + t * (top - low)) / high).clamp(-1.0, 1.0);
            let ink: [f64; 3] = if share < 0.0 {
                [0.0, 68.0, 136.0]
            } else {
                [178.0, 74.0, 0.0]
            };
            let [r, g, b] = ink.map(|x| (255.0 + (x - 255.0) * share.abs()).round() as u8);
            format!("#{r:02x}{g:02x}{b:02x}")
        };
        Self::map(title, rows, (x, y), "value", colour)
    }

    /// Cells whose colours are a function of where their value lies between the smallest, 0, and the largest, 1.
    fn map(
        title: &str,
        rows: &[Vec<f64>],
        (x, y): (&Axis, &Axis),
        name: &str,
        colour: impl Fn(f64) -> String + Send + Sync + 'static,
    ) -> Self {
        let map = Heatmap::new()
            .with_data(rows.to_vec())
            .with_color_map(ColorMap::Custom(Arc::new(colour)))
            .with_x_range(x.range.0, x.range.1)
            .with_y_range(y.range.0, y.range.1)
            .with_cell_size(1.0);
        let centre = |range: (f64, f64), i: usize, n: usize| {
            range.0 + (i as f64 + 0.5) * (range.1 - range.0) / n as f64
        };
        let table = rows
            .iter()
            .enumerate()
            .flat_map(|(i, row)| {
                let at_y = centre(y.range, i, rows.len());
                row.iter().enumerate().map(move |(j, value)| {
                    let at_x = centre(x.range, j, row.len());
                    [
                        name.into(),
                        at_x.to_string(),
                        at_y.to_string(),
                        value.to_string(),
                    ]
                })
            })
            .collect();
        let plots = vec![Plot::Heatmap(map)];
        let mut layout = layout(&plots, title, x, y);
        layout.show_colorbar = false;
        Self {
            plots,
            layout,
            table,
        }
    }

    /// A colour picture of red, green and blue relative to the largest of all. Light on black, or, `inverse`, ink on white: then
    /// the values are what paper lacks. `rows[0]` is drawn at the bottom.
    pub(crate) fn colours(title: &str, rows: &[Vec<[f64; 3]>], inverse: bool) -> Self {
        let all = || rows.iter().flatten();
        let high = all().flatten().copied().fold(0.0, f64::max);
        let scale = if high > 0.0 { high } else { 1.0 };
        let level = move |x: f64| {
            let share = (x / scale).clamp(0.0, 1.0);
            (255.0 * if inverse { 1.0 - share } else { share }).round() as u8
        };
        let palette: Vec<String> = all()
            .map(|&[r, g, b]| format!("#{:02x}{:02x}{:02x}", level(r), level(g), level(b)))
            .collect();
        // The plotter maps numbers to colours: every pixel gets a number of its own.
        let last = (palette.len() - 1).max(1) as f64;
        let width = rows.first().map_or(0, Vec::len);
        let number = |i: usize, j: usize| (i * width + j) as f64;
        let numbers: Vec<Vec<f64>> = (0..rows.len())
            .map(|i| (0..width).map(|j| number(i, j)).collect())
            .collect();
        let table = (rows.iter().enumerate())
            .flat_map(|(i, row)| {
                row.iter().enumerate().flat_map(move |(j, pixel)| {
                    ["red", "green", "blue"]
                        .into_iter()
                        .zip(pixel)
                        .map(move |(name, value)| {
                            [
                                name.into(),
                                (j as f64 + 0.5).to_string(),
                                (i as f64 + 0.5).to_string(),
                                value.to_string(),
                            ]
                        })
                })
            })
            .collect();
        let (x, y) = (Axis::bare("", width), Axis::bare("", rows.len()));
        let colour =
            move |t: f64| palette[((t * last).round() as usize).min(palette.len() - 1)].clone();
        let map = Heatmap::new()
            .with_data(numbers)
            .with_color_map(ColorMap::Custom(Arc::new(colour)))
            .with_x_range(x.range.0, x.range.1)
            .with_y_range(y.range.0, y.range.1)
            .with_cell_size(1.0);
        let plots = vec![Plot::Heatmap(map)];
        let mut layout = layout(&plots, title, &x, &y);
        layout.show_colorbar = false;
        Self {
            plots,
            layout,
            table,
        }
        .picture()
    }

    /// Curves, with a legend where they are named.
    pub(crate) fn lines(title: &str, series: &[Series], x: &Axis, y: &Axis) -> Self {
        let plots: Vec<Plot> = series
            .iter()
            .map(|s| {
                let points: Vec<_> = s
                    .points
                    .iter()
                    .map(|p| (x.place(p.0), y.place(p.1)))
                    .collect();
                let mut line = LinePlot::new()
                    .with_data(points)
                    .with_color(COLOURS[s.colour % COLOURS.len()])
                    .with_stroke_width(2.0);
                if s.dashed {
                    line = line.with_dashed();
                }
                if !s.name.is_empty() {
                    line = line.with_legend(s.name.as_str());
                }
                Plot::Line(line)
            })
            .collect();
        let layout = layout(&plots, title, x, y)
            .with_show_grid(true)
            .with_legend_width(legend_width(series));
        Self {
            plots,
            layout,
            table: points(series),
        }
    }

    /// Clouds of points; dashed series are drawn as lines.
    pub(crate) fn scatter(title: &str, series: &[Series], x: &Axis, y: &Axis) -> Self {
        let mut plots = Vec::new();
        for s in series {
            let colour = COLOURS[s.colour % COLOURS.len()];
            let plot = if s.dashed {
                let line = LinePlot::new()
                    .with_data(s.points.clone())
                    .with_color(colour)
                    .with_stroke_width(2.0)
                    .with_legend(s.name.as_str());
                Plot::Line(line)
            } else {
                let cloud = ScatterPlot::new()
                    .with_data(s.points.clone())
                    .with_color(colour)
                    .with_size(3.5)
                    .with_legend(s.name.as_str());
                Plot::Scatter(cloud)
            };
            plots.push(plot);
        }
        let layout = layout(&plots, title, x, y).with_legend_width(legend_width(series));
        Self {
            plots,
            layout,
            table: points(series),
        }
    }

    /// Vertical bars under their labels.
    pub(crate) fn bars(title: &str, bars: &[(String, f64)], y_label: &str, colour: usize) -> Self {
        let mut plot = BarPlot::new().with_width(0.7);
        for (label, value) in bars {
            plot = plot.with_colored_bar(label.as_str(), *value, COLOURS[colour % COLOURS.len()]);
        }
        let plots = vec![Plot::Bar(plot)];
        let high = bars.iter().map(|b| b.1).fold(0.0, f64::max);
        // Steps that two decimals show exactly.
        let steps = [0.02, 0.05, 0.1, 0.2, 0.5];
        let step = steps.into_iter().find(|s| high <= 5.0 * s);
        let step = step.unwrap_or((high / 4.0).ceil());
        let mut layout = Layout::auto_from_plots(&plots)
            .with_title(title)
            .with_y_label(y_label)
            .with_title_size(18)
            .with_label_size(16)
            .with_tick_size(14)
            .with_y_tick_step(step)
            .with_y_tick_format(TickFormat::Fixed(2))
            .with_show_grid(false)
            .with_y_axis_min(0.0)
            .with_y_axis_max(if high > 0.0 { 1.1 * high } else { 1.0 });
        if bars.iter().any(|b| b.0.len() > 4) {
            layout = layout.with_x_tick_rotate(-45.0);
        }
        let table = bars
            .iter()
            .map(|(label, value)| {
                [
                    "bar".into(),
                    label.clone(),
                    String::new(),
                    value.to_string(),
                ]
            })
            .collect();
        Self {
            plots,
            layout,
            table,
        }
    }

    /// The same panel with its legend elsewhere than at the top right.
    pub(crate) fn legend(mut self, position: LegendPosition) -> Self {
        self.layout = self.layout.with_legend_position(position);
        self
    }

    /// The same panel without numbers along its axes: matrices, whose rows are counted from the top.
    pub(crate) fn without_numbers(mut self) -> Self {
        let nothing = || TickFormat::Custom(Arc::new(|_: f64| String::new()));
        self.layout = self
            .layout
            .with_x_tick_format(nothing())
            .with_y_tick_format(nothing())
            .with_tick_length(0.0);
        self
    }

    /// The same panel as a picture: square pixels in a thin frame, without numbers.
    pub(crate) fn picture(mut self) -> Self {
        let ends = |low: Option<f64>, high: Option<f64>| (low.unwrap_or(0.0), high.unwrap_or(1.0));
        let x = ends(self.layout.x_axis_min, self.layout.x_axis_max);
        let y = ends(self.layout.y_axis_min, self.layout.y_axis_max);
        let corners = [(x.0, y.0), (x.1, y.0), (x.1, y.1), (x.0, y.1), (x.0, y.0)];
        let frame = LinePlot::new().with_data(corners.to_vec());
        self.plots.push(Plot::Line(
            frame.with_color("#b0b0b0").with_stroke_width(1.0),
        ));
        self.layout = self.layout.with_equal_aspect();
        // The frame is enough.
        self.layout.theme.axis_color = self.layout.theme.background.clone();
        self.without_numbers()
    }

    fn title(&self) -> &str {
        self.layout.title.as_deref().unwrap_or_default()
    }
}

/// Room for the longest name; the plotter's own estimate is too small for this font.
fn legend_width(series: &[Series]) -> f64 {
    let longest = series.iter().map(|s| s.name.chars().count()).max();
    48.0 + 8.6 * longest.unwrap_or(0) as f64
}

fn points(series: &[Series]) -> Vec<[String; 4]> {
    series
        .iter()
        .flat_map(|s| {
            s.points
                .iter()
                .map(|(x, y)| [s.name.clone(), x.to_string(), y.to_string(), String::new()])
        })
        .collect()
}

/// A drawn figure, ready to be written.
pub(crate) struct Drawing {
    pub(crate) svg: String,
    pub(crate) png: Vec<u8>,
    pub(crate) csv: Vec<u8>,
}

/// Draws panels row by row on a grid of `columns` columns, each panel `size` pixels wide and high.
pub(crate) fn draw(columns: usize, size: (f64, f64), panels: Vec<Panel>) -> Result<Drawing> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(["panel", "series", "x", "y", "value"])?;
    for panel in &panels {
        for [series, x, y, value] in &panel.table {
            csv.write_record([panel.title(), series, x, y, value])?;
        }
    }
    let rows = panels.len().div_ceil(columns);
    let structure = (0..panels.len()).map(|i| vec![i]).collect();
    let (plots, layouts): (Vec<_>, Vec<_>) =
        panels.into_iter().map(|p| (p.plots, p.layout)).unzip();
    let scene = Figure::new(rows, columns)
        .with_structure(structure)
        .with_plots(plots)
        .with_layouts(layouts)
        .with_cell_size(size.0, size.1)
        .with_spacing(18.0)
        .with_padding(14.0)
        .render();
    Ok(Drawing {
        svg: SvgBackend::default().render_scene(&scene),
        png: RasterBackend::new().with_scale(1.5).render_scene(&scene)?,
        csv: csv.into_inner().map_err(|e| e.to_string())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_axis_covers_whole_decades() {
        let axis = Axis::log("D", 3e-5, 0.2);
        assert_eq!(axis.range, (-5.0, 0.0));
        assert!((axis.place(1e-3) + 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_colour_picture_holds_its_colours() {
        let rows = [vec![[1.0, 0.0, 0.0], [0.0, 0.5, 1.0]]];
        for (inverse, expected) in [
            (false, ["#ff0000", "#0080ff"]),
            (true, ["#00ffff", "#ff8000"]),
        ] {
            let panel = Panel::colours("p", &rows, inverse);
            let svg = draw(1, (300.0, 260.0), vec![panel]).unwrap().svg;
            assert!(
                expected.iter().all(|colour| svg.contains(colour)),
                "{expected:?}"
            );
        }
    }

    #[test]
    fn the_table_holds_what_is_drawn() {
        let axis = Axis::linear("x", 0.0, 2.0);
        let panel = Panel::density("p", &[vec![0.0, 1.0], vec![2.0, 3.0]], &axis, &axis);
        let drawing = draw(1, (300.0, 260.0), vec![panel]).unwrap();
        let csv = String::from_utf8(drawing.csv).unwrap();
        assert_eq!(csv.lines().count(), 5);
        assert!(csv.contains("p,density,1.5,1.5,3"));
        assert!(drawing.svg.contains("<svg") && drawing.png.starts_with(b"\x89PNG"));
    }
}
