import { Loading } from "../parts/states";

export function Explore() {
  return <Loading />;
}
