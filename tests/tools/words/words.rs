// Counts words and prints the most frequent ones as JSON, again and again: a program for the flame graph of docs/recipes.md.
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

#[inline(never)]
fn make_text(seed: &mut u64) -> String {
    let mut text = String::new();
    for i in 0..20000 {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let word = (*seed >> 33) % (1 + (*seed >> 45) % 2000);
        write!(text, "word{}{}", word, if i % 9 == 8 { ".\n" } else { " " }).unwrap();
    }
    text
}

#[inline(never)]
fn count_words(text: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word.to_string()).or_insert(0) += 1;
    }
    counts
}

#[inline(never)]
fn sort_counts(counts: BTreeMap<String, usize>) -> Vec<(String, usize)> {
    let mut sorted: Vec<_> = counts.into_iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sorted
}

#[inline(never)]
fn to_json(counts: &[(String, usize)]) -> String {
    let mut out = String::new();
    for (word, count) in counts {
        writeln!(out, "{{\"word\": {:?}, \"count\": {}}}", word, count).unwrap();
    }
    out
}

fn main() {
    let seconds = std::env::args().nth(1).map_or(5, |s| s.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut seed, mut bytes) = (1, 0);
    while Instant::now() < end {
        bytes += to_json(&sort_counts(count_words(&make_text(&mut seed)))).len();
    }
    println!("{} bytes", bytes);
}
