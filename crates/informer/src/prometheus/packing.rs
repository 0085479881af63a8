//! What packing has gained, by kind, read at the time of a scrape.

use std::{collections::BTreeMap, fmt};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

use crate::packed::packed_kinds;

/// All kinds of which objects were packed in this process.
#[derive(Debug)]
pub(super) struct Packing;

impl Collector for Packing {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // A kind may be packed by several types.
        let mut kinds = BTreeMap::<String, (u64, u64, u64)>::new();
        for packed in packed_kinds() {
            let (plain, kept, dictionaries) = kinds.entry(packed.kind).or_default();
            *plain += packed.plain_bytes;
            *kept += packed.packed_bytes;
            *dictionaries += packed.dictionary_bytes as u64;
        }
        if kinds.is_empty() {
            return Ok(());
        }
        let help = "What objects of a kind took that were packed, before and after.";
        let mut family =
            encoder.encode_descriptor("packed", help, Some(&Unit::Bytes), MetricType::Counter)?;
        for (kind, &(plain, packed, _)) in &kinds {
            for (form, bytes) in [("plain", plain), ("packed", packed)] {
                let labels = [("kind", kind.as_str()), ("form", form)];
                ConstCounter::new(bytes).encode(family.encode_family(&labels)?)?;
            }
        }
        let help = "What the newest dictionaries of a kind take in memory.";
        let mut family =
            encoder.encode_descriptor("dictionary", help, Some(&Unit::Bytes), MetricType::Gauge)?;
        for (kind, (_, _, dictionaries)) in &kinds {
            let labels = [("kind", kind.as_str())];
            ConstGauge::new(*dictionaries).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
