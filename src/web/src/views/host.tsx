import { Loading } from "../parts/states";

export function HostView() {
  return <Loading />;
}
