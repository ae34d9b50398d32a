"""Answers one prompt greedily with a model and each adapter; prints the token ids."""

import json
import sys

from vllm import LLM, SamplingParams
from vllm.lora.request import LoRARequest


def main() -> None:
    model, *adapters = sys.argv[1:]
    llm = LLM(
        model=model,
        enforce_eager=True,
        dtype="float32",
        max_model_len=512,
        block_size=32,
        num_gpu_blocks_override=32,
        enable_lora=True,
        max_loras=1,
        max_cpu_loras=2,
        max_lora_rank=8,
    )
    greedy = SamplingParams(temperature=0, max_tokens=16, ignore_eos=True)
    answers = []
    requests = [LoRARequest(path, index, path) for index, path in enumerate(adapters, 1)]
    for lora in (None, *requests, None):
        (output,) = llm.generate(["hello world"], greedy, lora_request=lora, use_tqdm=False)
        answers.append(list(output.outputs[0].token_ids))
    chat = llm.chat([{"role": "user", "content": "hi"}], greedy, use_tqdm=False)[0]
    sys.stdout.write(f"RESULT {json.dumps({'answers': answers, 'chat_prompt': chat.prompt})}\n")


if __name__ == "__main__":
    main()
