//! Panels of means with their spread, and of surfaces.

use std::sync::Arc;

use kuva::plot::{ColorMap, ContourPlot, LinePlot, ScatterPlot};
use kuva::render::layout::TickFormat;
use kuva::render::plots::Plot;

use super::{Axis, COLOURS, Panel, Series, layout, legend_width, points};

/// A mean and its spread for each of some things, or nothing where there is none.
#[derive(Clone, Debug)]
pub(crate) struct Ranges {
    pub(crate) name: String,
    pub(crate) colour: usize,
    pub(crate) values: Vec<Option<(f64, f64)>>,
}

impl Panel {
    /// Means with error bars side by side, each thing under its name.
    pub(crate) fn ranges(title: &str, names: &[&str], series: &[Ranges], y: &Axis) -> Self {
        let mut plots = Vec::new();
        let mut table = Vec::new();
        let mut shown = Vec::new();
        for (at, s) in series.iter().enumerate() {
            let shift = 0.24 * (at as f64 - 0.5 * (series.len() as f64 - 1.0));
            let given = (s.values.iter().enumerate()).filter_map(|(i, v)| Some((i, (*v)?)));
            let places: Vec<(f64, f64)> = (given.clone())
                .map(|(i, (mean, _))| (i as f64 + 1.0 + shift, mean))
                .collect();
            let mut cloud = ScatterPlot::new()
                .with_data(places.clone())
                .with_y_err(given.clone().map(|(_, (_, spread))| spread))
                .with_color(COLOURS[s.colour % COLOURS.len()])
                .with_size(5.0);
            if !s.name.is_empty() {
                cloud = cloud.with_legend(s.name.as_str());
            }
            plots.push(Plot::Scatter(cloud));
            shown.push(Series::new(&s.name, s.colour, places));
            table.extend(given.map(|(i, (mean, spread))| {
                let name = names.get(i).copied().unwrap_or_default();
                [
                    s.name.clone(),
                    name.to_owned(),
                    mean.to_string(),
                    spread.to_string(),
                ]
            }));
        }
        let labels: Vec<String> = names.iter().map(|&n| n.to_owned()).collect();
        let label = move |v: f64| {
            let whole = (v - v.round()).abs() < 1e-6 && v >= 0.5;
            let name = labels.get((v.round() as usize).wrapping_sub(1));
            name.filter(|_| whole).cloned().unwrap_or_default()
        };
        let x = Axis::linear("", 0.0, names.len() as f64 + 1.0);
        let layout = layout(&plots, title, &x, y)
            .with_x_tick_step(1.0)
            .with_x_tick_format(TickFormat::Custom(Arc::new(label)))
            .with_legend_width(legend_width(&shown));
        Self {
            plots,
            layout,
            table,
        }
    }

    /// Filled contours of a function with a line over them.
    pub(crate) fn contours(
        title: &str,
        f: impl Fn(f64, f64) -> f64,
        levels: &[f64],
        line: &Series,
        x: &Axis,
        y: &Axis,
    ) -> Self {
        const POINTS: usize = 80;
        let grid = |a: &Axis| -> Vec<f64> {
            let step = (a.range.1 - a.range.0) / (POINTS - 1) as f64;
            (0..POINTS).map(|i| a.range.0 + i as f64 * step).collect()
        };
        let (across, up) = (grid(x), grid(y));
        let z: Vec<Vec<f64>> = up
            .iter()
            .map(|&y| across.iter().map(|&x| f(x, y)).collect())
            .collect();
        let mut table: Vec<[String; 4]> = Vec::new();
        for (y, row) in up.iter().zip(&z) {
            table.extend(across.iter().zip(row).map(|(x, z)| {
                [
                    "surface".into(),
                    x.to_string(),
                    y.to_string(),
                    z.to_string(),
                ]
            }));
        }
        table.extend(points(std::slice::from_ref(line)));
        let contours = ContourPlot::new()
            .with_grid(z, across, up)
            .with_levels(levels)
            .with_colormap(ColorMap::Viridis)
            .with_filled();
        let over = LinePlot::new()
            .with_data(line.points.clone())
            .with_color(COLOURS[line.colour % COLOURS.len()])
            .with_stroke_width(2.5)
            .with_legend(line.name.as_str());
        let plots = vec![Plot::Contour(contours), Plot::Line(over)];
        let layout =
            layout(&plots, title, x, y).with_legend_width(legend_width(std::slice::from_ref(line)));
        Self {
            plots,
            layout,
            table,
        }
    }
}
