"""From a config.json to a model as memory sees it."""

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vramscope.exporters.signals.memory.config_fields import ConfigFields, ModelConfigError
from vramscope.exporters.signals.memory.families import FAMILIES
from vramscope.exporters.signals.memory.model import Model
from vramscope.exporters.signals.memory.quantization import Quantization, read_quantization

__all__ = ["read_config_file", "read_model"]

MOST_CONFIG_BYTES = 16 * 1024 * 1024

# Fields that change no tensor and nothing that is kept of a request.
HARMLESS = re.compile(
    r"""
    .*_token_id | .*_token_ids? | .*dropout.* | .*_pdrop | .*_eps | .*epsilon | .*_theta | rope_.*
    | .*initializer.* | .*_act | .*activation.* | .*_coef | .*_range | .*_limit | .*softcap.*
    | architectures | model_type | transformers_version | auto_map | _name_or_path | use_cache
    | name_or_path | pretraining_tp | partial_rotary_factor | query_pre_attn_scalar
    | output_.* | return_dict | is_encoder_decoder | is_decoder | task_specific_params | chunk_size
    | norm_topk_prob | scoring_func | n_group | topk_group | routed_scaling_factor | aux_loss.*
    | seq_aux | ep_size | router_.* | rescale_.* | residual_.* | hidden_dropout | time_step_.*
    | attn_temperature_.* | floor_scale | attn_scale | original_max_position_embeddings
    | tokens_per_second | fullatt_block_indexes | window_size | spatial_patch_size | id2label
    | label2id | keys_to_ignore_at_inference | cache_implementation | alibi | .*_jitter_noise
    | initial_context_length | init_std
    | layerdrop | prefix | scale_attn.* | reorder_and_upcast_attn | summary_.* | n_ctx
    | max_window_layers | use_qk_norm | mixer_rms_eps | use_mamba_kernels | use_mambapy
    | expand | d_inner | norm_before_gate | rms_norm | num_nextn_predict_layers
    | swiglu_limit | swiglu_alpha | qk_head_dim | use_associative_scan | num_logits_to_keep
    | sliding_window | sliding_window_pattern
    """,
    re.VERBOSE,
)


def read_config_file(path: Path) -> dict[str, Any]:
    """Return the object in a config.json, or in the one of a model's folder.

    Raises:
        ModelConfigError: it is not there, not readable, too large, not JSON or no object.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_CONFIG_BYTES + 1)
    except OSError as error:
        raise ModelConfigError(
            f"{file}: {error.strerror}: want a model's folder or its config.json"
        ) from error
    if len(data) > MOST_CONFIG_BYTES:
        raise ModelConfigError(f"{file}: over {MOST_CONFIG_BYTES:,} bytes: no config.json")
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelConfigError(f"{file}: not JSON: {error}") from error
    if not isinstance(values, dict):
        raise ModelConfigError(f"{file}: {type(values).__name__}: want an object")
    return values


def read_model(values: Mapping[str, Any], place: str) -> tuple[Model, Quantization | None]:
    """Return the model of a config, and how its matrices are quantised.

    Args:
        values: the object in a config.json.
        place: where it is, for messages.

    Raises:
        ModelConfigError: an architecture that is not known here, or a field missing or wrong.
    """
    fields = ConfigFields(values, place)
    names = fields.list_of(str, "architectures")
    if not names:
        raise fields.missing(["architectures"])
    known = [name for name in names if name in FAMILIES]
    if not known:
        close = difflib.get_close_matches(names[0], FAMILIES, n=1)
        hint = f"nearest is {close[0]}; " if close else ""
        raise fields.error(
            "architectures",
            names[0],
            f"one whose memory is known here: {hint}{', '.join(FAMILIES)}",
        )
    model = FAMILIES[known[0]](fields, known[0])
    given = fields.inner("quantization_config") or fields.inner("compression_config")
    quantization = None if given is None else read_quantization(given)
    not_read = sorted(
        name
        for name in fields.not_asked()
        if not HARMLESS.fullmatch(name.rpartition(".")[2])
        and not name.startswith(("quantization_config.", "compression_config."))
    )
    return replace(model, not_read=tuple(not_read)), quantization
