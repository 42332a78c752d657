//! What the figures of several rounds amount to.

use crate::json::Object;

/// Figures of rounds, from the least to the greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) least: f64,
    /// A quarter of the rounds is below.
    pub(super) lower: f64,
    pub(super) median: f64,
    /// A quarter of the rounds is above.
    pub(super) upper: f64,
    pub(super) most: f64,
}

impl Spread {
    /// The spread of finite figures; `None` when one is missing or not finite, or there are no figures.
    pub(super) fn of(figures: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let figures: Option<Vec<f64>> = figures.into_iter().collect();
        let mut figures = figures.filter(|figures| figures.iter().all(|it| it.is_finite()))?;
        figures.sort_by(f64::total_cmp);
        let (least, most) = (*figures.first()?, *figures.last()?);
        Some(Self {
            least,
            lower: quartile(&figures, 1),
            median: quartile(&figures, 2),
            upper: quartile(&figures, 3),
            most,
        })
    }

    pub(super) fn json(self) -> Object {
        Object::default()
            .decimal("median", self.median)
            .decimal("lower_quartile", self.lower)
            .decimal("upper_quartile", self.upper)
            .decimal("min", self.least)
            .decimal("max", self.most)
    }
}

/// The figure below which that many quarters of the sorted figures are, in a straight line between neighbours.
fn quartile(sorted: &[f64], quarters: usize) -> f64 {
    let quarters_before = sorted.len().saturating_sub(1) * quarters;
    let at = |index: usize| sorted.get(index).copied();
    let below = at(quarters_before / 4).unwrap_or(f64::NAN);
    let above = at(quarters_before / 4 + 1).unwrap_or(below);
    let share = [0.0, 0.25, 0.5, 0.75][quarters_before % 4];
    below + (above - below) * share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_neighbours() {
        for (figures, expected) in [
            (&[7.0][..], [7.0, 7.0, 7.0, 7.0, 7.0]),
            (&[2.0, 1.0], [1.0, 1.25, 1.5, 1.75, 2.0]),
            (&[5.0, 1.0, 4.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0, 5.0]),
            (&[4.0, 1.0, 3.0, 2.0], [1.0, 1.75, 2.5, 3.25, 4.0]),
        ] {
            let spread = Spread::of(figures.iter().copied().map(Some)).expect("figures");
            let Spread {
                least,
                lower,
                median,
                upper,
                most,
            } = spread;
            assert_eq!([least, lower, median, upper, most], expected);
        }
    }

    #[test]
    fn a_missing_figure_leaves_no_spread() {
        for figures in [&[][..], &[Some(1.0), None], &[Some(1.0), Some(f64::NAN)]] {
            assert_eq!(Spread::of(figures.iter().copied()), None);
        }
    }
}
