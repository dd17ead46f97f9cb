"""A server made with FastMCP, for calls from a cluster."""

from fastmcp import Context, FastMCP

mcp = FastMCP("of-fastmcp")


@mcp.tool(annotations={"readOnlyHint": True})
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    print("a line that is no message", flush=True)
    return a + b


@mcp.tool
async def steps(ctx: Context) -> str:
    """Reports its progress."""
    for done in range(1, 4):
        await ctx.report_progress(done, 3, f"step {done}")
    return "done"


@mcp.tool
def fails() -> str:
    """Does not do it."""
    raise ValueError("it broke")


mcp.run(show_banner=False)
