/** A warning that everyone may change what is shown. */
import { Callout } from "../../parts/callout";

export function AccessIsOff() {
  return (
    <Callout tone="warn" label="Access control" title="Access control is off">
      <p>
        Everyone who reaches this daemon may read and change everything, also keys and users. The
        daemon requires keys and logins when <code>security.access</code> is <code>true</code>.
      </p>
    </Callout>
  );
}
