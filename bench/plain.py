"""The plain way, as a program: asyncio.gather, a semaphore, AsyncOpenAI as it comes.

    python -m bench.plain URL CALLS CONCURRENCY

Prints a JSON object: seconds from the first call to the last reply, and CPU seconds of the process.
"""

import asyncio
import json
import sys
import time

from openai import AsyncOpenAI

from agents.prompts import read_prompt


async def main(url: str, calls: int, concurrency: int) -> None:
    """Make the calls and print what they took."""
    client = AsyncOpenAI(api_key="simulated", base_url=url)
    slots, prompt = asyncio.Semaphore(concurrency), read_prompt("sub_agent")

    async def call(number: int) -> str:
        async with slots:
            reply = await client.chat.completions.create(
                model="simulated",
                max_completion_tokens=800,
                messages=[
                    {"role": "system", "content": prompt},
                    {"role": "user", "content": json.dumps({"goal": f"Part {number}", "kind": "analyze"})},
                ],
            )
        return reply.choices[0].message.content or ""

    await call(0)
    began, cpu = time.perf_counter(), time.process_time()
    texts = await asyncio.gather(*(call(number) for number in range(calls)))
    took = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu, "replies": len(texts)}
    sys.stdout.write(json.dumps(took))
    await client.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
