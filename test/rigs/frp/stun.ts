import dgram from "node:dgram";

const MAGIC = 0x2112a442;

/** A binding response (RFC 8489, section 7.3.1): how the other side is seen, and another address to ask (RFC 5780, section 7.4). */
function answer(request: Buffer, from: dgram.RemoteInfo, other: { address: string; port: number }): Buffer {
  const address = (type: number, { address: host, port }: { address: string; port: number }, xor: boolean): Buffer => {
    const attribute = Buffer.alloc(12);
    attribute.writeUInt16BE(type, 0);
    attribute.writeUInt16BE(8, 2);
    attribute.writeUInt8(1, 5);
    attribute.writeUInt16BE(xor ? port ^ (MAGIC >>> 16) : port, 6);
    const bits = host.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
    attribute.writeUInt32BE((xor ? bits ^ MAGIC : bits) >>> 0, 8);
    return attribute;
  };
  const attributes = Buffer.concat([address(0x0020, from, true), address(0x802c, other, false)]);
  const head = Buffer.alloc(20);
  head.writeUInt16BE(0x0101, 0);
  head.writeUInt16BE(attributes.length, 2);
  request.copy(head, 4, 4, 20);
  return Buffer.concat([head, attributes]);
}

const bound = (address: string): Promise<dgram.Socket> =>
  new Promise((resolve, reject) => {
    const socket = dgram.createSocket("udp4");
    socket.once("error", reject);
    socket.bind(0, address, () => resolve(socket));
  });

/** A STUN server on two ports of loopback, as frpc wants it to learn how its NAT behaves. */
export async function startStun(address = "127.0.0.1"): Promise<Disposable & { readonly at: string }> {
  const sockets = [await bound(address), await bound(address)] as const;
  for (const [index, socket] of sockets.entries()) {
    const { port } = sockets[1 - index]!.address();
    socket.on("message", (request, from) => {
      if (request.length >= 20) socket.send(answer(request, from, { address, port }), from.port, from.address);
    });
  }
  return {
    at: `${address}:${sockets[0].address().port}`,
    [Symbol.dispose]: () => {
      for (const socket of sockets) socket.close();
    },
  };
}
