"""The session that BuildKit calls back into while it builds: files, secrets, registry credentials.

BuildKit opens no connection to us. We hijack one HTTP request and serve gRPC over it, with the roles turned
around: the engine is the HTTP/2 client, we are the server. All modules above `pipe` know only a pipe of bytes,
so another carrier of the same HTTP/2 conversation is one more class.

    transport ─▶ pipe ─▶ server ─▶ stream ─▶ filesync, services
                                   messages ──┘
"""
