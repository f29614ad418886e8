//! The plot of the book: the cost of a message against the size of each growing thing.

use std::fmt::Write;

use super::growth::Growth;
use super::scene::On;

const WIDTH: f64 = 790.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 60.0;
/// Room for the names of the lines.
const RIGHT: f64 = 260.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 50.0;
/// Powers of ten on the horizontal axis.
const MOST_POWER: i32 = 6;
/// Colours that people who see few colours can tell apart, too, readable on white and on black.
const COLOURS: [&str; 5] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a08a00"];

pub(crate) fn svg(growth: &[Growth]) -> String {
    let most = growth
        .iter()
        .flat_map(|line| line.points.iter().map(|point| point.median))
        .fold(1.0, f64::max);
    let scale = Scale {
        most: (most * 1.1).ceil(),
    };
    let mut drawing = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#808080\">\n\
         <title>What Parlor adds to a message, in milliseconds, against the size of what grows</title>\n"
    );
    drawing += &axes(&scale);
    for (index, line) in growth.iter().enumerate() {
        drawing += &curve(&scale, line, index);
    }
    drawing + "</svg>\n"
}

struct Scale {
    /// Milliseconds at the top.
    most: f64,
}

impl Scale {
    fn x(&self, size: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * size.max(1.0).log10() / f64::from(MOST_POWER)
    }

    fn y(&self, milliseconds: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * milliseconds / self.most
    }
}

fn axes(scale: &Scale) -> String {
    const STEPS: u32 = 5;
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let mut lines = String::new();
    for step in 0..=STEPS {
        let value = scale.most * f64::from(step) / f64::from(STEPS);
        let y = scale.y(value);
        push(
            &mut lines,
            format_args!(
                "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#808080\" stroke-opacity=\".3\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value:.1} ms</text>\n",
                LEFT - 6.0,
                y + 4.0
            ),
        );
    }
    for power in 0..=MOST_POWER {
        let x = scale.x(10_f64.powi(power));
        let label = ["1", "10", "100", "1,000", "10,000", "100,000", "1,000,000"]
            [usize::try_from(power).expect("a small number")];
        push(
            &mut lines,
            format_args!(
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>\n",
                bottom + 20.0
            ),
        );
    }
    lines
}

fn curve(scale: &Scale, line: &Growth, index: usize) -> String {
    let colour = COLOURS[index % COLOURS.len()];
    let dashes = match line.on {
        On::Telegram => "",
        On::Discord => " stroke-dasharray=\"5 4\"",
    };
    let spots: Vec<String> = line
        .points
        .iter()
        .map(|point| {
            format!(
                "{:.1},{:.1}",
                scale.x(point.size as f64),
                scale.y(point.median)
            )
        })
        .collect();
    let row = TOP + 20.0 * index as f64;
    let mut drawing = format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>\n",
        spots.join(" ")
    );
    for (x, y) in spots.iter().filter_map(|spot| spot.split_once(',')) {
        push(
            &mut drawing,
            format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"{colour}\"/>\n"),
        );
    }
    push(
        &mut drawing,
        format_args!(
            "<text x=\"{:.1}\" y=\"{row:.1}\" fill=\"{colour}\">{}</text>\n",
            WIDTH - RIGHT + 20.0,
            line.name()
        ),
    );
    drawing
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments)
        .expect("text can always be added to");
}
