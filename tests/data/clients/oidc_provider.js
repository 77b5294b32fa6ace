// A provider of OpenID Connect for tests: the library oidc-provider with its own forms, and people
// whose names are their logins. The argument is JSON.
const { generateKeyPairSync } = require("node:crypto");
const { join } = require("node:path");
const { pathToFileURL } = require("node:url");

const { port, redirect, secret, kid, alg, idTokenHasClaims, idTokenSeconds } = JSON.parse(
  process.argv[2],
);
const GROUPS = { ann: ["dev", "ops", "staff"], bob: ["staff"], "cy/x y": "dev" };

function key() {
  const pair =
    alg === "ES256"
      ? generateKeyPairSync("ec", { namedCurve: "P-256" })
      : generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...pair.privateKey.export({ format: "jwk" }), kid, alg, use: "sig" };
}

// The caller reads one line.
console.info = console.error;

async function main() {
  const library = join(process.env.NODE_PATH, "oidc-provider/lib/index.js");
  const { Provider } = await import(pathToFileURL(library));
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    clients: [
      {
        client_id: "granary",
        client_secret: secret,
        redirect_uris: [redirect],
        id_token_signed_response_alg: alg,
      },
    ],
    jwks: { keys: [key()] },
    cookies: { keys: ["the key of the cookies of tests"] },
    claims: { openid: ["sub"], profile: ["preferred_username", "groups"], email: ["email"] },
    conformIdTokenClaims: !idTokenHasClaims,
    ttl: { IdToken: () => idTokenSeconds },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: `${id}@example.org`, groups: GROUPS[id] ?? [] }),
    }),
  });
  provider.on("server_error", (_context, error) => console.error(error));
  provider.listen(port, "127.0.0.1", () => console.log("ready"));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
