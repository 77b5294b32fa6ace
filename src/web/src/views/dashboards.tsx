import { Loading } from "../parts/states";

export function Dashboards() {
  return <Loading />;
}
