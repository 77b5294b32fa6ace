import { Loading } from "../parts/states";

export function Status() {
  return <Loading />;
}
