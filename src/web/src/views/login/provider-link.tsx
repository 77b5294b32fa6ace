/** The link to the provider at which people log in, if the daemon has one. */
import { api } from "../../api/client";
import { useResource } from "../../api/resource";

export function ProviderLink() {
  const name = useResource("provider", api.provider).value.data?.name ?? null;
  if (name === null) return null;
  // The daemon answers this address, so the target makes the browser open it, not the page.
  return (
    <a class="button" href="/login/oidc" target="_self">
      Log in with {name}
    </a>
  );
}
