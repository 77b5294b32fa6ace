"""A real SMTP server with STARTTLS, a name and a password: `smtp_server.py FOLDER`.

It makes a certificate for localhost and writes who signed it to FOLDER/ca.pem, then its port to
standard output, then each mail as a line of JSON.
"""

import json
import socket
import ssl
import sys
import time
from email import message_from_bytes, policy
from pathlib import Path

import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult


class Mails:
    async def handle_DATA(self, server, session, envelope):
        mail = message_from_bytes(envelope.content, policy=policy.default)
        parts = {part.get_content_type(): part.get_content() for part in mail.walk() if not part.is_multipart()}
        print(
            json.dumps(
                {
                    "from": envelope.mail_from,
                    "to": envelope.rcpt_tos,
                    "subject": mail["Subject"],
                    "id": mail["Message-ID"],
                    "encrypted": session.ssl is not None,
                    "parts": parts,
                }
            ),
            flush=True,
        )
        return "250 taken"


def authenticate(server, session, envelope, mechanism, data):
    known = data.login == b"granary" and data.password == b"secret"
    return AuthResult(success=known)


def main():
    folder = Path(sys.argv[1])
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(
        Mails(),
        hostname="127.0.0.1",
        port=port,
        tls_context=context,
        require_starttls=True,
        auth_required=True,
        authenticator=authenticate,
    )
    controller.start()
    print(port, flush=True)
    while True:
        time.sleep(3600)


main()
