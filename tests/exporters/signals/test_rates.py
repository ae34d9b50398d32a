from vramscope.exporters.signals.rates import lora_hit_ratio, preemptions_per_100, recompute_tax


def test_hit_ratio_counts_only_gpu_as_warm() -> None:
    assert lora_hit_ratio({"gpu": 3, "cpu": 4, "disk": 5}) == 0.25


def test_hit_ratio_has_no_sample_before_the_first_adapter_request() -> None:
    assert lora_hit_ratio({"gpu": 0, "cpu": 0, "disk": 0}) is None


def test_preemption_frequency_is_per_100_first_schedules() -> None:
    assert preemptions_per_100(preemptions=9, first_schedules=12) == 75


def test_preemption_frequency_has_no_sample_before_the_first_schedule() -> None:
    assert preemptions_per_100(0, 0) is None


def test_tax_is_recomputed_over_all_prefill() -> None:
    assert recompute_tax(recomputed_tokens=576, prefill_tokens=1060) == 576 / 1060


def test_tax_has_no_sample_before_the_first_prefill() -> None:
    assert recompute_tax(0, 0) is None
