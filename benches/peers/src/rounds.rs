//! Rounds: every contestant once in each, until enough of them count.

use crate::statistics::{self, median};

/// The outcome of one contestant's turn in a round.
#[derive(Debug)]
pub enum Turn<T> {
    /// A figure.
    Counted(T),
    /// No figure: it cannot do what is asked. The round counts for the others.
    Unable,
    /// Other processes were busy: the round is repeated.
    Disturbed,
    /// It failed, and how: the round is repeated.
    Void(String),
}

/// The rounds that count: a row of figures for each, in the order of the contestants.
#[derive(Debug)]
pub struct Rounds<T> {
    rows: Vec<Vec<Option<T>>>,
    /// Rounds repeated because other processes were busy.
    pub disturbed: u32,
    /// Rounds repeated because a contestant failed.
    pub void: u32,
}

impl<T: Clone> Rounds<T> {
    /// Runs rounds until `count` of them count. Every other one goes through the contestants in reverse.
    ///
    /// # Errors
    ///
    /// A turn's, and when too many rounds are disturbed or void.
    pub fn collect<C>(
        count: u32,
        contestants: &mut [C],
        mut turn: impl FnMut(&mut C) -> Result<Turn<T>, String>,
    ) -> Result<Self, String> {
        let mut rounds = Self {
            rows: Vec::new(),
            disturbed: 0,
            void: 0,
        };
        for number in 0..count {
            let row = loop {
                match row(contestants, number % 2 == 1, &mut turn)? {
                    Turn::Counted(row) => break row,
                    Turn::Void(reason) if rounds.void < VOID_MAX => {
                        eprintln!("void round: {reason}");
                        rounds.void += 1;
                    }
                    Turn::Void(reason) => return Err(format!("too many void rounds: {reason}")),
                    Turn::Disturbed | Turn::Unable if rounds.disturbed < DISTURBED_MAX => {
                        rounds.disturbed += 1;
                    }
                    Turn::Disturbed | Turn::Unable => {
                        return Err(format!(
                            "{DISTURBED_MAX} rounds disturbed by other processes; try when it is quiet"
                        ));
                    }
                }
            };
            rounds.rows.push(row);
        }
        Ok(rounds)
    }

    /// Prints between two tables how many rounds were repeated, if any.
    pub fn report(&self) {
        if self.disturbed + self.void > 0 {
            let (disturbed, void) = (self.disturbed, self.void);
            println!("\n{disturbed} disturbed and {void} void rounds were repeated.");
        }
    }

    /// A contestant's figures.
    pub fn of(&self, index: usize) -> impl Iterator<Item = &T> {
        self.rows
            .iter()
            .filter_map(move |row| row.get(index)?.as_ref())
    }

    /// The median of a figure of a contestant; not a number when it has none.
    pub fn median(&self, index: usize, pick: impl Fn(&T) -> f64) -> f64 {
        median(&self.of(index).map(pick).collect::<Vec<_>>())
    }

    /// The median of these ratios with their spread.
    pub fn ratio(
        &self,
        index: usize,
        base: usize,
        digits: usize,
        ratio: impl Fn(&T, &T) -> f64,
    ) -> String {
        statistics::ratio(&self.ratios(index, base, ratio), digits)
    }

    /// In each round a contestant against another one.
    pub fn ratios(&self, index: usize, base: usize, ratio: impl Fn(&T, &T) -> f64) -> Vec<f64> {
        let in_row =
            |row: &Vec<Option<T>>| Some(ratio(row.get(index)?.as_ref()?, row.get(base)?.as_ref()?));
        self.rows.iter().filter_map(in_row).collect()
    }
}

/// Every contestant once; what makes the round not count ends it.
fn row<C, T: Clone>(
    contestants: &mut [C],
    is_reversed: bool,
    turn: &mut impl FnMut(&mut C) -> Result<Turn<T>, String>,
) -> Result<Turn<Vec<Option<T>>>, String> {
    let mut row = vec![None; contestants.len()];
    let mut order: Vec<_> = contestants.iter_mut().zip(&mut row).collect();
    if is_reversed {
        order.reverse();
    }
    for (contestant, figure) in order {
        match turn(contestant)? {
            Turn::Counted(counted) => *figure = Some(counted),
            Turn::Unable => {}
            Turn::Disturbed => return Ok(Turn::Disturbed),
            Turn::Void(reason) => return Ok(Turn::Void(reason)),
        }
    }
    Ok(Turn::Counted(row))
}

/// Disturbed rounds after which the machine is too busy to measure on.
const DISTURBED_MAX: u32 = 40;

/// A contestant that fails in more rounds than this does not work.
const VOID_MAX: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_round_is_reversed_and_a_disturbed_one_repeated() {
        let (mut seen, mut is_disturbed) = (String::new(), true);
        let rounds = Rounds::collect(2, &mut ['a', 'b', 'c'], |name| {
            seen.push(*name);
            let figure = f64::from(u32::from(*name) - u32::from('a') + 1);
            Ok(match *name {
                'b' => Turn::Unable,
                'c' if std::mem::take(&mut is_disturbed) => Turn::Disturbed,
                _ => Turn::Counted(figure),
            })
        });
        let rounds = rounds.expect("two rounds");
        assert_eq!(seen, "abcabccba");
        assert_eq!((rounds.disturbed, rounds.void), (1, 0));
        assert_eq!(rounds.of(1).count(), 0);
        assert_eq!(rounds.ratios(2, 0, |this, first| this / first), [3.0, 3.0]);
        assert!(rounds.ratios(1, 0, |this, first| this / first).is_empty());
    }

    #[test]
    fn a_contestant_that_always_fails_ends_the_rounds() {
        let fails = |_: &mut ()| Ok(Turn::<f64>::Void("no lock".to_owned()));
        let error = Rounds::collect(1, &mut [()], fails).expect_err("void");
        assert!(error.contains("no lock"), "{error}");
    }
}
