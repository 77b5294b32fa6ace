import { Loading } from "../parts/states";

export function DashboardView() {
  return <Loading />;
}
