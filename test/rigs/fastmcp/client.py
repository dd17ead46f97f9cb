"""A client of the endpoint that has no line in common with it: FastMCP, with fastmcp-tasks. What it is to do comes on standard input, what came of it goes to standard output, both as JSON."""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

# With this, every client declares the tasks extension.
from fastmcp_tasks import ToolTask, call_tool_task
from fastmcp_tasks.client_models import ClientCreateTaskResult

SUBMIT = "relay_submit_command"


def transport(to):
    if "url" in to:
        return StreamableHttpTransport(to["url"], auth=to["token"])
    return StdioTransport(to["command"], to["args"], env=to["env"], cwd=to["cwd"], keep_alive=False)


async def begin(client, argv, **_):
    """Look around, have a command run to its end without a word about tasks, cancel another one's task, and leave a third one's behind."""
    tools = await client.list_tools()
    clusters = await client.call_tool("relay_list_clusters")
    ended = await client.call_tool(SUBMIT, {"cluster": "local", "argv": ["echo", "through"]})
    canceled = await call_tool_task(client, SUBMIT, {"cluster": "local", "argv": ["sleep", "1000"]})
    await canceled.cancel()
    task = await call_tool_task(client, SUBMIT, {"cluster": "local", "argv": argv})
    return {
        "protocol": client.protocol_version,
        "tools": [tool.name for tool in tools],
        "clusters": clusters.structured_content,
        "ended": ended.structured_content,
        "canceled": (await canceled.wait(timeout=90)).status,
        "status": (await task.status()).status,
        "task": task.create_result.model_dump(by_alias=True, mode="json"),
    }


async def collect(client, task, **_):
    """Come back with what is known of a task, answer what it asks for, and have its result."""
    handle = ToolTask(client, SUBMIT, ClientCreateTaskResult.model_validate(task), raise_on_error=False)
    status = await handle.status()
    result = await asyncio.wait_for(handle.result(), 90)
    return {"status": status.status, "result": result.structured_content, "isError": result.is_error}


async def answer(_message, _type, _params, _context):
    return {"name": "by FastMCP"}


async def main():
    given = json.load(sys.stdin)
    work = {"begin": begin, "collect": collect}

    async def one(do, to, **more):
        async with Client(transport(to), elicitation_handler=answer) as client:
            return await work[do](client, **more)

    done = await asyncio.gather(*(one(**what) for what in given))
    # Some of its own words are for standard output, too.
    os.write(1, json.dumps(done).encode())


asyncio.run(main())
