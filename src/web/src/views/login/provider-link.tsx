/** The link to the provider at which people log in, where the daemon has one. */
import { api } from "../../api/client";
import { useResource } from "../../api/resource";

export function ProviderLink() {
  const name = useResource("provider", api.provider).value.data?.name ?? null;
  if (name === null) return null;
  // The browser opens it: the target keeps the page from showing it as a view.
  return (
    <a class="button" href="/login/oidc" target="_self">
      Log in with {name}
    </a>
  );
}
