//! What a row of figures amounts to.

/// The middle value, or the mean of the two in the middle; not a number when there is none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle), sorted.len() % 2) {
        (Some(value), 1) => *value,
        (Some(value), _) => (value + sorted.get(middle.wrapping_sub(1)).unwrap_or(value)) / 2.0,
        (None, _) => f64::NAN,
    }
}

/// The least and the greatest value.
#[must_use]
pub fn spread(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| {
            (low.min(v), high.max(v))
        })
}

/// The median of the ratios with their spread; empty when there are no ratios.
#[must_use]
pub fn ratio(ratios: &[f64], digits: usize) -> String {
    if ratios.is_empty() {
        return String::new();
    }
    if ratios.iter().all(|ratio| ratio.is_nan()) {
        return "none".to_owned();
    }
    let (middle, (low, high)) = (median(ratios), spread(ratios));
    format!("{middle:.digits$} [{low:.digits$}-{high:.digits$}]")
}
